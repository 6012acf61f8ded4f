import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOAD_CORE, pinned } from './cores.ts';

export interface LoadRequest {
  readonly method: string;
  /** From the slash on, with the query string. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

const CONNECTIONS = 16;

/** In a header, a path or a body: replaced by another text of the same length in every request. */
export const NEW_EACH_TIME = '@@@@@@@@-new-each-time-@@@@@@@@';

/**
 * Requests per second of a server on loopback that is sent `requests` in turn, over keep-alive connections (16 unless told otherwise) from the load
 * core. Needs `wrk`.
 */
export async function requestRate(
  port: number,
  requests: readonly LoadRequest[],
  seconds: number,
  connections = CONNECTIONS,
): Promise<number> {
  if (spawnSync('wrk', ['--version']).error !== undefined)
    throw new Error('This benchmark needs wrk (Debian: apt install wrk): a load generator in JavaScript is slower than the servers.');
  const folder = mkdtempSync(join(tmpdir(), 'kit-wrk-'));
  try {
    const script = join(folder, 'requests.lua');
    writeFileSync(script, scriptFor(requests));
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, `http://127.0.0.1:${port}`];
    const text = await output(pinned(LOAD_CORE, 'wrk', args));
    const failed = /Non-2xx or 3xx responses: (\d+)/.exec(text);
    if (failed !== null) throw new Error(`${failed[1]} requests were refused: ${requests[0]?.method} ${requests[0]?.path}`);
    return Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The requests are formatted once, when wrk starts; only {@link NEW_EACH_TIME} is put in as they leave. */
function scriptFor(requests: readonly LoadRequest[]): string {
  const rows = requests.map(({ method, path, headers, body }) => {
    const table = Object.entries(headers).map(([name, value]) => `[${lua(name)}]=${lua(value)}`);
    return `{${lua(method)},${lua(path)},{${table.join(',')}},${body === undefined ? 'nil' : lua(body)}}`;
  });
  return `
local given = {${rows.join(',\n')}}
local ready = {}
local rest = {}
local at = 0
local made = 0
local mark = ${lua(NEW_EACH_TIME)}
init = function()
  for i, r in ipairs(given) do
    local text = wrk.format(r[1], r[2], r[3], r[4])
    local from, to = string.find(text, mark, 1, true)
    ready[i] = from and string.sub(text, 1, from - 1) or text
    rest[i] = from and string.sub(text, to + 1)
  end
end
request = function()
  at = at % #ready + 1
  if not rest[at] then return ready[at] end
  made = made + 1
  return ready[at] .. string.format('${randomBytes(8).toString('hex')}%0${NEW_EACH_TIME.length - 16}d', made) .. rest[at]
end
`;
}

/** JSON's escapes for quotes, backslashes and line breaks are Lua's. */
function lua(text: string): string {
  return JSON.stringify(text);
}

async function output({ command, args }: { readonly command: string; readonly args: readonly string[] }): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((done, failed) => child.once('error', failed).once('close', done));
  if (code !== 0) throw new Error(`${command} failed (${code}): ${text.slice(-500)}`);
  return text;
}
