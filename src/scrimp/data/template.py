"""Chat templates: Jinja, set up exactly as transformers does, so that both render the same bytes.

Follows transformers 5.24 `utils/chat_template_utils.py` (sandbox, filters, globals, the generation tag, aliases of the
reasoning field) with one difference: the date that a template may print is fixed, because tokens that change at
midnight would break exact resume and the step count of the plan.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

# The date that Llama 3's own template falls back to.
TEMPLATE_DATE = datetime(2024, 7, 26)

_GENERATION_TAG = re.compile(r"\{%-?\s*generation\s*-?%\}")
_REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")

# For tokenizers without a template (base models): roles in words, the end-of-text token after each answer.
PLAIN_TEMPLATE = (
    "{{ bos_token if starts_with_bos else '' }}"
    "{% for message in messages %}{{ '### ' + message['role'] | capitalize + ':\\n' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{{ '\\n\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '### Assistant:\\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTemplate:
    """A template and where it came from. `variables` are the special tokens it may print by name."""

    text: str
    origin: str
    variables: Mapping[str, Any]
    compiled: "Template"

    @property
    def marks_answers(self) -> bool:
        """Whether the template says itself which parts the assistant generated."""
        return _GENERATION_TAG.search(self.text) is not None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        generation_prompt: bool = False,
    ) -> str:
        """The conversation as the text the model reads.

        Raises:
            jinja2.TemplateError: the template refuses these messages.
        """
        return self.compiled.render(**self._context(messages, tools=tools, generation_prompt=generation_prompt))

    def render_marked(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        generation_prompt: bool = False,
    ) -> tuple[str, list[tuple[int, int]]]:
        """The text, and the (start, end) characters inside its generation tags.

        Raises:
            jinja2.TemplateError: the template refuses these messages.
        """
        spans: list[tuple[int, int]] = []
        parts: list[str] = []
        position = 0

        def note(length: int) -> None:
            spans.append((position, position + length))

        context = self._context(messages, tools=tools, generation_prompt=generation_prompt)
        for part in self.compiled.generate(**context, **{_NOTE: note}):
            parts.append(part)
            position += len(part)
        return "".join(parts), spans

    def _context(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]], generation_prompt: bool
    ) -> dict[str, Any]:
        return {
            **self.variables,
            "messages": [_with_reasoning(message) for message in messages],
            "tools": list(tools) or None,
            "documents": None,
            "add_generation_prompt": generation_prompt,
        }


# The context variable through which the generation tag reports its spans; not a name a template would use.
_NOTE = "scrimp_note_generation"


def compile_template(text: str, *, origin: str, variables: Mapping[str, Any], now: datetime) -> ChatTemplate:
    """A template ready to render.

    Raises:
        jinja2.TemplateSyntaxError: the text is no template.
    """
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Any, because Jinja declares filters and globals as bare dicts.
    environment: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_generation_extension(), loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime(now)
    environment.globals["dict"] = _PlainDict()
    environment.globals["namespace"] = _namespace_class()
    return ChatTemplate(text=text, origin=origin, variables=variables, compiled=environment.from_string(text))


def _with_reasoning(message: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in message.items() if value is not None}
    reasoning = next((plain[key] for key in _REASONING_FIELDS if key in plain), None)
    return plain if reasoning is None else {"thinking": reasoning, **plain, "reasoning_content": reasoning}


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    from jinja2.exceptions import TemplateError

    raise TemplateError(message)


def _strftime(now: datetime) -> Callable[[str], str]:
    return lambda pattern: now.strftime(pattern)


class _PlainDict:
    """`dict` for templates, without the attributes that would lead out of the sandbox."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


def _namespace_class() -> type:
    from jinja2.exceptions import SecurityError
    from jinja2.utils import Namespace

    def check(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(f"a chat template may not store the attribute {name!r}")

    class PublicNamespace(Namespace):
        """A namespace that refuses attributes with a leading underscore."""

        def __init__(*args: Any, **kwargs: Any) -> None:
            # The signature of Jinja's Namespace, so that `namespace(self=...)` works.
            self, args = args[0], args[1:]
            attributes = dict(*args, **kwargs)
            for name in attributes:
                check(name)
            Namespace.__init__(self, attributes)

        def __setitem__(self, name: str, value: Any) -> None:
            check(name)
            Namespace.__setitem__(self, name, value)

    return PublicNamespace


def _generation_extension() -> type:
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser

    class GenerationTag(Extension):
        """`{% generation %}...{% endgeneration %}`: renders its body and reports where it lies."""

        tags = {"generation"}  # noqa: RUF012 - the attribute that Jinja reads

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            call = self.call_method("report", [nodes.ContextReference()])
            return nodes.CallBlock(call, [], [], body).set_lineno(line)

        def report(self, context: Mapping[str, Any], caller: Callable[[], str]) -> str:
            text = caller()
            note = context.get(_NOTE)
            if note is not None:
                note(len(text))
            return text

    return GenerationTag
