// Drives the TypeScript SDK of Codex: `node sdk_driver.mjs SDK_DIR`, where SDK_DIR holds node_modules.
//
// Standard input: {codex: CodexOptions, turns: [{thread?, resume?, input, options?, abortOn?, abortOnFile?,
// run?}]}.
// A turn starts a thread with the ThreadOptions `thread`, goes on with the thread of the id `resume`,
// or, with neither, with the thread before it. `abortOn` is the type of the event upon which the
// signal of the turn is aborted, `abortOnFile` the path of a file upon which it is; `run` calls `Thread.run` in place of `Thread.runStreamed`.
// Standard output: [{threadId, events, turn?, error?: {name, message}}], one for each turn.

import { existsSync, watch } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const sdk = join(process.argv[2], "node_modules/@openai/codex-sdk/dist/index.js");
const { Codex } = await import(pathToFileURL(sdk));
const { codex: options, turns } = JSON.parse(await text(process.stdin));
const codex = new Codex(options);

async function play(thread, { input, options = {}, abortOn, abortOnFile, run }) {
  const events = [];
  const aborter = new AbortController();
  const turnOptions = { ...options, signal: aborter.signal };
  const watcher =
    abortOnFile &&
    watch(dirname(abortOnFile), () => {
      if (existsSync(abortOnFile)) aborter.abort();
    });
  try {
    if (run) {
      return { events, turn: await thread.run(input, turnOptions) };
    }
    const streamed = await thread.runStreamed(input, turnOptions);
    for await (const event of streamed.events) {
      events.push(event);
      if (event.type === abortOn) aborter.abort();
    }
    return { events };
  } catch ({ name, message }) {
    return { events, error: { name, message } };
  } finally {
    watcher?.close();
  }
}

const results = [];
let thread;
for (const turn of turns) {
  if (turn.resume) thread = codex.resumeThread(turn.resume, turn.thread);
  else if (turn.thread) thread = codex.startThread(turn.thread);
  const result = await play(thread, turn);
  results.push({ threadId: thread.id, ...result });
}
console.log(JSON.stringify(results));
