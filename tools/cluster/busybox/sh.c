/*
 * The program `sh` of the image of busybox.
 *
 * Upstream's image has a shell that keeps environment variables whose names are not identifiers, such as `data-1`. That of Debian's
 * busybox removes them, and bash keeps them. So bash runs where there are such variables, and busybox elsewhere, for its messages.
 */
#include <ctype.h>
#include <unistd.h>

extern char **environ;

static int has_identifier(const char *entry)
{
	if (!isalpha((unsigned char)*entry) && *entry != '_')
		return 0;
	while (isalnum((unsigned char)*entry) || *entry == '_')
		entry++;
	return *entry == '=';
}

int main(int argc, char **argv)
{
	const char *shell = "/bin/busybox";

	(void)argc;
	for (char **entry = environ; *entry; entry++)
		if (!has_identifier(*entry))
			shell = "/bin/bash";
	execv(shell, argv);
	return 127;
}
