"""A client in TypeScript, generated from the description of the service by common tools, compiles and works."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from serving import MODELS, ask, free_port, start

TOOLS = ("openapi-typescript@7", "openapi-fetch@0.13", "typescript@5")
SECONDS = 300

MAIN = """
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };
type Event = components["schemas"]["EventAnswer"];

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });
const params = { path: { model: "ads" } };

function expect<T>(what: string, got: T, wanted: T): void {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(got)}`);
}
function known<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const decided = known(await client.POST("/v1/models/{model}/decide", { params, body: { context: { x: 0.3, y: 1 } } }));
const id: string = decided.id, action: string = decided.action, probability: number | null = decided.probability;
expect("action", ["a", "b", "c"].includes(action) && probability !== null, true);

const reward = { id, reward: 1, event: "order-17" };
const report = async (body: components["schemas"]["FeedbackBody"]): Promise<Event> =>
  known(await client.POST("/v1/models/{model}/feedback", { params, body }));
expect("late reward", (await report(reward)).status, "accepted");
expect("duplicate", (await report(reward)).status, "duplicate");
const corrected = await report({ ...reward, reward: 0.25, version: 1 });
expect("correction", [corrected.status, corrected.reward ?? null], ["accepted", 0.25]);

const other = { ...reward, reward: 7, version: 1 };
const conflict = await client.POST("/v1/models/{model}/feedback", { params, body: other });
expect("conflict", conflict.response.status, 409);
expect("its status", conflict.error !== undefined && "status" in conflict.error && conflict.error.status, "conflict");

const body = [{ id, reward: 1, event: "order-18" }, { id: "nobody", reward: 1 }];
const many: Event[] = known(await client.POST("/v1/models/{model}/feedback/batch", { params, body }));
expect("batch", many.map(one => one.status), ["accepted", "unknown"]);

const contexts = [{ context: { x: 1, y: 1 } }, { context: {} }];
const both = known(await client.POST("/v1/models/{model}/decide/batch", { params, body: contexts }));
expect("batch of decisions", both.map(one => "error" in one), [false, true]);

const found = known(await client.GET("/v1/decisions/{id}", { params: { path: { id } } }));
expect("decision", [found.status, found.reward], ["rewarded", 1.25]);

const settings: components["schemas"]["ModelSettings"] = {
  silence: { kind: "mature", seconds: 60 }, actions: { a: { cost: 1 }, b: { cost: 2 } }, action_features: ["cost"],
};
const made = await client.PUT("/v1/models/{model}", { params: { path: { model: "mail" } }, body: settings });
expect("settings", known(made).settings_version, 1);
expect("models", known(await client.GET("/v1/models")).models, ["ads", "mail"]);
// @ts-expect-error a reward needs a number
void (() => client.POST("/v1/models/{model}/feedback", { params, body: { id, reward: "1" } }));
"""


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])


@pytest.mark.slow
def test_a_client_that_common_tools_generate_compiles_and_works(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    (tmp_path / "models.toml").write_text(MODELS)
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    (tmp_path / "main.ts").write_text(MAIN)
    if subprocess.run([npm, "ping"], cwd=tmp_path, capture_output=True, timeout=SECONDS).returncode:
        pytest.skip("the registry of npm cannot be reached")
    run(tmp_path, npm, "install", "--no-audit", "--no-fund", *TOOLS)
    port = free_port()
    process = start(tmp_path, port)
    try:
        address, tools = f"http://127.0.0.1:{port}", tmp_path / "node_modules" / ".bin"
        run(tmp_path, str(tools / "openapi-typescript"), f"{address}/openapi.json", "-o", "schema.d.ts")
        options = ("--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom")
        run(tmp_path, str(tools / "tsc"), "--strict", *options, "main.ts")
        run(tmp_path, "node", "main.js", address)
        assert ask(port, "/v1/models/ads")["decisions"] == 2
    finally:
        process.terminate()
        process.wait()
