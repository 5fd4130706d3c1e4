"""The OpenAPI description, generated from the bodies."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

import belated
from belated.decisions._encoding import LONGEST, MOST_PLACES, PER_ACTION, SHARED, VERSION
from belated.decisions._operations import LARGEST
from belated.decisions._session_settings import CUT, LONGEST_IDLE, MOST_STEPS, TERMINAL
from belated.decisions._settings import AGGREGATES, LIKELIHOODS, MOST_ACTIONS, MOST_DRAWS, MOST_SIGNALS
from belated.decisions._silence import MOST_AGES
from belated.service import _bodies as bodies
from belated.service._bodies import MOST_ITEMS, ErrorAnswer, EventAnswer

Schema = dict[str, Any]

_KINDS = (
    bodies.DecideBody,
    bodies.FeedbackBody,
    bodies.SignalBody,
    bodies.ActivateBody,
    bodies.CancelBody,
    bodies.EndBody,
    bodies.DecideAnswer,
    EventAnswer,
    bodies.DecisionAnswer,
    bodies.SessionAnswer,
    bodies.ModelsAnswer,
    bodies.ConfiguredAnswer,
    bodies.ErasedAnswer,
    ErrorAnswer,
)
_REFUSALS = {
    "400": "the request is not valid HTTP",
    "401": "a valid key is required",
    "403": "the key lacks the scope, or the request is cross-site",
    "404": "there is no such model, decision or session",
    "408": "the request took too long",
    "409": "the request contradicts the log",
    "410": "the decision existed, but is no longer stored",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "421": "the host name is not one of the service's",
    "422": "the body is invalid",
    "431": "the headers are too large",
    "503": "nothing was stored: retry the same request",
}
_ABOUT_EVENTS = ("404", "409", "410", "422")
"""HTTP errors that can be the outcome of an event."""


def _number(least: float, most: float, about: str, kind: str = "number") -> Schema:
    return {"type": kind, "minimum": least, "maximum": most, "description": about}


def _object(properties: Schema, about: str = "", required: tuple[str, ...] = ()) -> Schema:
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, **({"required": list(required)} if required else {}), **({"description": about} if about else {})}


_ANYTHING: Schema = {"type": "object", "additionalProperties": True}
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}


def _names(about: str) -> Schema:
    return {"type": "array", "items": _NAME, "uniqueItems": True, "description": about}


def _silence(kind: str, about: str, *, required: tuple[str, ...] = (), **more: Schema) -> Schema:
    seconds: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST}
    return _object({"kind": {"const": kind}, "seconds": seconds, **more}, about, ("kind", *required))


_REWARD: Schema = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
_HALF_LIFE: Schema = {"type": "number", "minimum": 1e-3, "maximum": LARGEST}

SETTINGS: dict[str, Schema] = {
    "silence": {
        "anyOf": [
            _silence("unknown", "only reported rewards count; after `seconds`, if given, a decision expires"),
            _silence("mature", "a decision counts when it is `seconds` old", required=("seconds",), default=_REWARD),
            _silence(
                "by_age",
                "the reward of each age counts when the age is over; the last ends after `seconds`",
                required=("seconds",),
                default=_REWARD,
                ages={"type": "integer", "minimum": 1, "maximum": MOST_AGES},
            ),
            _silence(
                "default_after", "without a reward it counts with `reward`", required=("seconds",), reward=_REWARD
            ),
        ],
        "description": "What a missing reward means. There is no safe default, so it must be given.",
    },
    "actions": {
        "anyOf": [
            {"type": "array", "items": _NAME, "uniqueItems": True, "maxItems": MOST_ACTIONS},
            {"type": "object", "additionalProperties": _ANYTHING, "maxProperties": MOST_ACTIONS},
        ],
        "description": "Names, or a table of names with the features of each; if empty, every request lists its own.",
    },
    "retired": _names("Actions that are no longer offered."),
    "features": _names("Names of the context's numbers."),
    "categories": _names("Names of the context's categories: strings, or null."),
    "tags": _names("Names of the context's lists of strings."),
    "action_features": _names("Names of an action's numbers; if given, all actions share weights."),
    "action_categories": _names("Names of an action's categories."),
    "action_tags": _names("Names of an action's lists of strings."),
    "weights": {
        "type": "string",
        "enum": [PER_ACTION, SHARED],
        "description": "Whether each action has its own weights; shared if and only if actions have features.",
    },
    "hashed": _number(0, MOST_PLACES, "Hash buckets for categories and tags; required if there are any.", "integer"),
    "aggregate": {
        "type": "string",
        "enum": list(AGGREGATES),
        "description": "How several rewards of one decision are combined.",
    },
    "signals": {
        **_names("Names of signals that may precede a reward; only with silence by age."),
        "maxItems": MOST_SIGNALS,
    },
    "forgetting": _object(
        {"seconds": _HALF_LIFE, "decisions": _HALF_LIFE},
        "Half-life of what was learned, in seconds or in decisions. Without it nothing is forgotten.",
    ),
    "floor": _number(0, 1, "Fraction of decisions drawn uniformly at random."),
    "draws": _number(1, MOST_DRAWS, "Posterior draws per decision; with 1, probabilities are unknown.", "integer"),
    "scale": _number(0, LARGEST, "Factor on the standard deviations of draws: more or less exploration."),
    "noise": {
        "anyOf": [{"const": "auto"}, {"type": "number", "minimum": 1 / LARGEST, "maximum": LARGEST}],
        "description": "Standard deviation of the rewards; with auto, estimated from the residuals.",
    },
    "ridge": _number(1 / LARGEST, LARGEST, "Prior precision of the weights."),
    "likelihood": {
        "type": "string",
        "enum": list(LIKELIHOODS),
        "description": "Distribution of the rewards; revenue is mostly zero and otherwise skewed.",
    },
    "seed": _number(0, 2**63 - 1, "Seed of all random draws.", "integer"),
    "horizon": _number(1, MOST_STEPS, "Maximum steps of a session; makes the model one of sessions.", "integer"),
    "idle": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": LONGEST_IDLE,
        "description": "Seconds without a step after which a session ends.",
    },
    "leaving": {
        "type": "string",
        "enum": [CUT, TERMINAL],
        "description": "How an idle session ends: it was cut, or its last state is terminal (of value zero).",
    },
    "agent": {
        "anyOf": [_NAME, _ANYTHING],
        "description": "The planner of sessions: the name of an agent for simulators, or a table with its name "
        "as agent and its settings.",
    },
    "reward_range": {
        "type": "array",
        "items": _REWARD,
        "minItems": 2,
        "maxItems": 2,
        "description": "Minimum and maximum reward of one step of a session.",
    },
    "basis": {
        "anyOf": [_ANYTHING],
        "description": "A feature map for the numbers of a session's contexts, as in experiment files.",
    },
    "encoding": _number(1, VERSION, "Version of the feature encoding.", "integer"),
}
"""Every key of a model's table, with its limits; the reference page is generated from it, too."""


@cache
def specification() -> Schema:
    _, found = msgspec.json.schema_components(_KINDS, ref_template="#/components/schemas/{name}")
    model, wanted = _parameter("model"), _parameter("id")
    listed = {
        ("/v1/models/{model}/decide", "post"): _write("decide", "Decide", bodies.DecideBody, bodies.DecideAnswer),
        ("/v1/models/{model}/feedback", "post"): _write("feedback", "Report a reward", bodies.FeedbackBody),
        ("/v1/models/{model}/signal", "post"): _write("signal", "Report a signal", bodies.SignalBody),
        ("/v1/models/{model}/activate", "post"): _write("activate", "Activate a decision", bodies.ActivateBody),
        ("/v1/models/{model}/cancel", "post"): _write("cancel", "Cancel a decision or a session", bodies.CancelBody),
        ("/v1/models/{model}/end", "post"): _write("end", "End a session", bodies.EndBody),
        ("/v1/models/{model}/decide/batch", "post"): _write_batch(
            "decide",
            "Make many decisions",
            bodies.DecideBody,
            {"anyOf": [_ref(bodies.DecideAnswer), _ref(ErrorAnswer)]},
        ),
        ("/v1/models/{model}/feedback/batch", "post"): _write_batch(
            "feedback", "Report many rewards", bodies.FeedbackBody
        ),
        ("/v1/models/{model}/signal/batch", "post"): _write_batch("signal", "Report many signals", bodies.SignalBody),
        ("/v1/models/{model}/activate/batch", "post"): _write_batch(
            "activate", "Activate many decisions", bodies.ActivateBody
        ),
        ("/v1/models/{model}/cancel/batch", "post"): _write_batch("cancel", "Cancel many decisions", bodies.CancelBody),
        ("/v1/models/{model}/end/batch", "post"): _write_batch("end", "End many sessions", bodies.EndBody),
        ("/v1/models/{model}/sessions/{session}", "get"): _operation(
            "showSession", "Look up a session", _ref(bodies.SessionAnswer), model, _parameter("session")
        ),
        ("/v1/models/{model}", "get"): _operation("showModel", "Show settings, weights and figures", _ANYTHING, model),
        ("/v1/models/{model}", "put"): _operation(
            "putModel", "Create or change a model", _ref(bodies.ConfiguredAnswer), model, body=_ref_to("ModelSettings")
        ),
        ("/v1/models/{model}/decisions", "delete"): _operation(
            "eraseDecisions",
            "Erase decisions, or drop old ones",
            _ref(bodies.ErasedAnswer),
            model,
            _query("id", _names("Ids of decisions to erase.")),
            _query("key", _names("Idempotency keys of decisions to erase.")),
            _query("session", _names("Sessions to erase, with all their steps.")),
            _query(
                "keep_learned", {"type": "boolean", "description": "Whether what was learned stays; required to erase."}
            ),
            _query(
                "before",
                {"type": "number", "description": "Drop decisions made before this time; what was learned stays."},
            ),
        ),
        ("/v1/models", "get"): _operation("listModels", "List the models", _ref(bodies.ModelsAnswer)),
        ("/v1/decisions/{id}", "get"): _operation(
            "showDecision", "Look up a decision", _ref(bodies.DecisionAnswer), wanted
        ),
        ("/health/live", "get"): _health("live", "Is the process alive?"),
        ("/health/ready", "get"): _health("ready", "Can decisions be stored?"),
    }
    paths: dict[str, Schema] = {}
    for (path, method), operation in listed.items():
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "belated: decisions with late rewards", "version": belated.__version__},
        "paths": paths,
        "security": [{"key": []}, {}],
        "components": {
            "schemas": {
                **{name: _plain(schema) for name, schema in sorted(found.items())},
                "ModelSettings": _object(SETTINGS, "The settings of a model.", ("silence",)),
            },
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        },
    }


def _plain(schema: Any) -> Any:
    """Return a schema that client generators understand.

    An object without properties may contain anything, which must be stated explicitly. A field with a default is
    optional; some generators require it nevertheless, so the default becomes part of the description.
    """
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _plain(each) for name, each in schema.items() if name != "default"}
    if schema.get("default") not in (None, "", ()):
        found["description"] = f"{msgspec.json.encode(schema['default']).decode()} if it is left out"
    if found.get("type") == "object" and "properties" not in found:
        found.setdefault("additionalProperties", True)
    return found


def _ref_to(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _ref(kind: type) -> Schema:
    return _ref_to(kind.__name__)


def _parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "schema": schema}


def _json(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}


def _operation(
    name: str,
    summary: str,
    answer: Schema,
    *parameters: Schema,
    body: Schema | None = None,
    more: tuple[str, ...] = (),
    about_events: tuple[str, ...] = (),
) -> Schema:
    good = {"description": "done", **_json(answer)}
    event: Schema = {"anyOf": [_ref(ErrorAnswer), _ref(EventAnswer)]}
    bad = {
        code: {"description": text, **_json(event if code in about_events else _ref(ErrorAnswer))}
        for code, text in _REFUSALS.items()
    }
    return {
        "operationId": name,
        "summary": summary,
        **({"parameters": list(parameters)} if parameters else {}),
        **({"requestBody": {"required": True, **_json(body)}} if body else {}),
        "responses": {"200": good, **dict.fromkeys(more, good), **bad},
    }


def _write(name: str, summary: str, given: type, answer: type = EventAnswer) -> Schema:
    model, body = _parameter("model"), _ref(given)
    if answer is not EventAnswer:
        return _operation(name, summary, _ref(answer), model, body=body)
    return _operation(name, summary, _ref(answer), model, body=body, more=("202",), about_events=_ABOUT_EVENTS)


def _write_batch(name: str, summary: str, given: type, answer: Schema | None = None) -> Schema:
    """Describe a route that takes a list and answers with a list of the same length."""
    sent = {"type": "array", "items": _ref(given), "minItems": 1, "maxItems": MOST_ITEMS}
    got = {"type": "array", "items": answer or _ref(EventAnswer)}
    return _operation(f"{name}Batch", summary, got, _parameter("model"), body=sent)


def _health(name: str, summary: str) -> Schema:
    found = _operation(name, summary, _ANYTHING)
    found["responses"]["503"] = {"description": "not ready", **_json(_ANYTHING)}
    return {**found, "security": []}
