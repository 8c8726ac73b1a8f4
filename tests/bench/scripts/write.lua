-- Sends one body again and again, with every @N@ in path and body replaced by a number that grows from START.
-- Arguments: METHOD CONTENT-TYPE START MODULUS BODY-FILE; with MODULUS > 0 @M@ is the number modulo it.
local method, content_type, number, modulus, path, body

function init(args)
  method, content_type, number, modulus = args[1], args[2], tonumber(args[3]), tonumber(args[4])
  local file = io.open(args[5], "rb")
  body = file:read("*a")
  file:close()
  path = wrk.path
  wrk.headers["Content-Type"] = content_type
end

function request()
  number = number + 1
  local marks = { N = tostring(number), M = tostring(modulus > 0 and number % modulus or 0) }
  local fill = function(text) return (text:gsub("@([NM])@", marks)) end
  return wrk.format(method, fill(path), nil, fill(body))
end
