"""The syntax errors that ANTLR reports for an expression, computed with the automata of cel-go's grammar.

`syntax` calls `antlr_errors` for expressions that `parser` rejects. `_Reader` follows the automata state by state, as
ANTLR's generated code does, because the runtime's own ParserInterpreter does not work.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from antlr4 import CommonTokenStream, InputStream, Lexer, Parser, PredictionContextCache
from antlr4.atn.ATNDeserializer import ATNDeserializer
from antlr4.atn.ATNState import ATNState, LoopEndState, StarLoopEntryState
from antlr4.atn.LexerATNSimulator import LexerATNSimulator
from antlr4.atn.ParserATNSimulator import ParserATNSimulator
from antlr4.atn.Transition import Transition
from antlr4.dfa.DFA import DFA
from antlr4.error.ErrorListener import ErrorListener
from antlr4.error.Errors import RecognitionException
from antlr4.error.ErrorStrategy import DefaultErrorStrategy
from antlr4.ParserRuleContext import InterpreterRuleContext

_MAX_RECOVERIES: Final = 30
_MAX_REPORTS: Final = 100
_RESERVED: Final = re.compile("no viable alternative at input '.(true|false|null)'")
_SYNCED: Final = (ATNState.PLUS_BLOCK_START, ATNState.STAR_LOOP_BACK)

AntlrError = tuple[int, int, str]
"""Line (from 1), column (from 0) and message of a syntax error."""


def antlr_errors(text: str) -> list[AntlrError]:
    """Return the syntax errors of an expression in the order in which ANTLR reports them; [] if it is valid.

    Each is a tuple of line (from 1), column (from 0) and message. After too many errors, the rest is not reported.
    """
    listener = _ErrorCollector()
    lexer = _Lexer(InputStream(text))
    lexer.removeErrorListeners()
    lexer.addErrorListener(listener)
    reader = _Reader(CommonTokenStream(lexer))
    reader.removeErrorListeners()
    reader.addErrorListener(listener)
    reader._errHandler = _Strategy()
    with suppress(_EnoughError):
        reader.read()
    return listener.all


class _EnoughError(Exception):
    """The exception that stops parsing after too many errors."""


class _ErrorCollector(ErrorListener):  # type: ignore[misc]
    """A listener that ANTLR's parser calls for each syntax error, and that collects them with cel-go's messages."""

    def __init__(self) -> None:
        self.all: list[AntlrError] = []

    def syntaxError(self, recognizer: Any, offendingSymbol: Any, line: int, column: int, msg: str, e: Any) -> None:  # noqa: N802, N803
        if "no viable alternative" in msg:
            msg = _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", msg)
        self.all.append(
            (line, column, msg if len(self.all) < _MAX_REPORTS else f"More than {_MAX_REPORTS} syntax errors")
        )
        if len(self.all) > _MAX_REPORTS:
            raise _EnoughError


class _Strategy(DefaultErrorStrategy):  # type: ignore[misc]
    """ANTLR's default error strategy, with at most `_MAX_RECOVERIES` attempts to recover from an error.

    Upstream: cel-go parser/parser.go, recoveryLimitErrorStrategy.
    """

    def __init__(self) -> None:
        super().__init__()
        self._attempts = 0

    def recover(self, recognizer: Any, e: Any) -> None:
        self._count(recognizer)
        super().recover(recognizer, e)

    def recoverInline(self, recognizer: Any) -> Any:  # noqa: N802
        self._count(recognizer)
        return super().recoverInline(recognizer)

    def _count(self, recognizer: Any) -> None:
        self._attempts += 1
        if self._attempts > _MAX_RECOVERIES:
            recognizer.notifyErrorListeners(f"error recovery attempt limit exceeded: {_MAX_RECOVERIES}")
            raise _EnoughError


class _Automaton:
    """The automaton of a grammar, read from an .interp file that ANTLR generates.

    Args:
        name: the name of the file in `data`.
    """

    def __init__(self, name: str) -> None:
        text = (Path(__file__).parent / "data" / name).read_text("utf-8")
        sections = dict(re.findall(r"(?m)^([a-z ]+):\n((?:.*\n)*?)(?:\n|\Z)", text + "\n"))
        self.literals = [_name(line) for line in sections["token literal names"].splitlines()]
        self.symbols = [_name(line) for line in sections["token symbolic names"].splitlines()]
        self.rules = sections["rule names"].split()
        numbers = [int(n) for n in re.findall(r"-?\d+", text[text.index("atn:") :])]
        self.atn = ATNDeserializer().deserialize(numbers)
        self.decisions = [DFA(state, i) for i, state in enumerate(self.atn.decisionToState)]
        self.cache = PredictionContextCache()


def _name(line: str) -> str:
    return "<INVALID>" if line == "null" else line


@lru_cache(maxsize=2)
def _automaton(name: str) -> _Automaton:
    return _Automaton(name)


class _Lexer(Lexer):  # type: ignore[misc]
    def __init__(self, text: InputStream) -> None:
        super().__init__(text)
        automaton = _automaton("CELLexer.interp")
        self.atn = automaton.atn
        self._interp = LexerATNSimulator(self, automaton.atn, automaton.decisions, automaton.cache)

    def getErrorDisplay(self, s: str) -> str:  # noqa: N802
        """Return a text as it is, as ANTLR's runtime for Go does. Python's escapes control characters."""
        return s


class _Reader(Parser):  # type: ignore[misc]
    """A parser that walks the automaton of the CEL grammar and reports errors, without building a tree."""

    def __init__(self, tokens: CommonTokenStream) -> None:
        super().__init__(tokens)
        automaton = _automaton("CEL.interp")
        self.atn = automaton.atn
        self.literalNames, self.symbolicNames, self.ruleNames = automaton.literals, automaton.symbols, automaton.rules
        self._interp = ParserATNSimulator(self, automaton.atn, automaton.decisions, automaton.cache)
        self.buildParseTrees = False

    def read(self) -> None:
        """Check the syntax of the whole text, starting at the grammar's first rule. No tree is built.

        Each syntax error is reported to the parser's error listeners, and parsing continues after it.

        Raises:
            _EnoughError: a listener or the error strategy gave up after too many errors.
        """
        self.state = 0
        self._rule(self.atn.ruleToStartState[0], -1, 0)

    def sempred(self, localctx: Any, ruleIndex: int, actionIndex: int) -> bool:  # noqa: N803
        return True

    def _rule(self, start: Any, invoking: int, precedence: int) -> None:
        """Parse one rule of the grammar, and report and recover from its errors.

        Args:
            start: the rule's start state.
            invoking: the number of the state from which the rule was called; -1 for the first rule.
            precedence: the lowest precedence of operators, for a left-recursive rule.
        """
        parent = self._ctx
        context = InterpreterRuleContext(parent, invoking, start.ruleIndex)
        if start.isPrecedenceRule:
            self.enterRecursionRule(context, start.stateNumber, start.ruleIndex, precedence)
        else:
            self.enterRule(context, start.stateNumber, start.ruleIndex)
        try:
            self._walk(start, parent, invoking)
        except RecognitionException as error:
            self._ctx.exception = error
            self._errHandler.reportError(self, error)
            self._errHandler.recover(self, error)
        finally:
            if start.isPrecedenceRule:
                self.unrollRecursionContexts(parent)
            else:
                self.exitRule()

    def _walk(self, state: Any, parent: Any, invoking: int) -> None:
        """Follow the automaton from a rule's start state to its end.

        Args:
            state: the start state of the rule.
            parent: the ANTLR context of the calling rule; None for the first rule.
            invoking: the number of the state from which the rule was called; -1 for the first rule.

        Raises:
            RecognitionException: a syntax error from which the rule cannot recover by itself.
        """
        sync_done = False  # true after the end of a loop, where sync() has run already
        while state.stateType != ATNState.RULE_STOP:
            self.state = state.stateNumber
            if (len(state.transitions) > 1 and not sync_done) or state.stateType in _SYNCED:
                self._errHandler.sync(self)
            sync_done = state.stateType == ATNState.STAR_LOOP_BACK
            edge = 1
            if len(state.transitions) > 1:
                self.state = state.stateNumber
                edge = self._interp.adaptivePredict(self._input, state.decision, self._ctx)
            state = self._step(state, state.transitions[edge - 1], parent, invoking)

    def _step(self, state: Any, transition: Any, parent: Any, invoking: int) -> Any:
        """Take one transition of the automaton and return the next state.

        A token that matches is consumed, and a rule that the transition calls is parsed completely.

        Args:
            state: the current state.
            transition: one of its transitions.
            parent: the ANTLR context of the calling rule; None for the first rule.
            invoking: the number of the state from which the current rule was called; -1 for the first rule.

        Raises:
            RecognitionException: the token does not match, or the precedence is too low.
        """
        match transition.serializationType:
            case Transition.EPSILON:
                loops = isinstance(state, StarLoopEntryState) and state.isPrecedenceDecision
                if loops and not isinstance(transition.target, LoopEndState):
                    context = InterpreterRuleContext(parent, invoking, self._ctx.getRuleIndex())
                    self.pushNewRecursionContext(
                        context, self.atn.ruleToStartState[state.ruleIndex].stateNumber, state.ruleIndex
                    )
            case Transition.ATOM:
                self.match(transition.label_)
            case Transition.RANGE | Transition.SET | Transition.NOT_SET:
                if transition.matches(self._input.LA(1), 1, 0x10FFFF):
                    self._errHandler.reportMatch(self)
                    self.consume()
                else:
                    self._errHandler.recoverInline(self)
            case Transition.RULE:
                self._rule(transition.target, state.stateNumber, transition.precedence)
                return transition.followState
            case Transition.PRECEDENCE:
                if not self.precpred(self._ctx, transition.precedence):
                    raise RecognitionException(recognizer=self, input=self._input, ctx=self._ctx)
        return transition.target
