// How large is the generated TypeScript client of the orders example in a page, whole and with one call of it, and how much more memory does the
// Python client take for a file of 60 MB, down and up, with and without an event loop? Sizes are bundled, minified and compressed with gzip; memory is
// the highest of the process beyond what a first small call took. Limits are our own.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { allowAny, Controller, createApp, raw, route } from 'kit';
import { generateClient } from 'kit/openapi';
import { rolldown } from 'rolldown';
import { z } from 'zod';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import type { Ratio } from './harness/ratio.ts';

const root = join(import.meta.dirname, '..');
const FILE_BYTES = 60_000_000;
/** Debian's, which has httpx. */
const PYTHON_PROGRAM = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';

function* zeros(): Generator<Buffer> {
  const piece = Buffer.alloc(100_000);
  for (let sent = 0; sent < FILE_BYTES; sent += piece.length) yield piece;
}

class FileController extends Controller {
  static override readonly tags = ['files'];
  count = route.get('/count', { permission: allowAny, response: z.strictObject({ files: z.int() }) }, () => ({ files: 1 }));
  read = route.get('/file', { permission: allowAny, response: raw('application/octet-stream') }, () => Readable.from(zeros()));
  replace = route.put(
    '/file',
    {
      permission: allowAny,
      body: raw(['application/octet-stream'], { bytesMax: 2 * FILE_BYTES, stream: true }),
      response: z.strictObject({ bytes: z.int() }),
    },
    async ({ body }) => {
      let bytes = 0;
      for await (const piece of body as AsyncIterable<Buffer>) bytes += piece.length;
      return { bytes };
    },
  );
}

const PYTHON = `import asyncio, json, os, sys, api
url, how = sys.argv[1:]
def peak():
    # Not ru_maxrss: a program begins with that of the process that started it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
def plain():
    client = api.Client(url)
    client.files.count()
    marks = [peak()]
    client.files.read().save("down.bin")
    marks.append(peak())
    with open("down.bin", "rb") as source:
        client.files.replace(body=source)
    return [*marks, peak()]
async def loop():
    async with api.AsyncClient(url) as client:
        await client.files.count()
        marks = [peak()]
        async with await client.files.read() as file:
            await file.save("down.bin")
        marks.append(peak())
        with open("down.bin", "rb") as source:
            await client.files.replace(body=source)
        return [*marks, peak()]
print(json.dumps(plain() if how == "sync" else asyncio.run(loop())))
`;

async function outputOf(command: string, args: readonly string[], cwd: string): Promise<string> {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((done, failed) => child.once('error', failed).once('close', done));
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
  return output;
}

async function memory(context: BenchmarkContext, folder: string): Promise<Ratio[]> {
  const app = createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/files': FileController } }, log: { level: 'silent' } });
  try {
    const url = await app.listen({ port: 0 });
    writeFileSync(join(folder, 'api.py'), generateClient(app.routes, { language: 'python', title: 'Files', version: '1' }));
    writeFileSync(join(folder, 'main.py'), PYTHON);
    const ratios: Ratio[] = [];
    for (const how of ['sync', 'async']) {
      const [before = 0, down = 0, up = 0] = JSON.parse(await outputOf(PYTHON_PROGRAM, ['main.py', url, how], folder)) as number[];
      const megabytes = [down - before, up - down].map((bytes) => bytes / 1_000_000);
      context.print(`Python, ${how}: 60 MB down ${megabytes[0]?.toFixed(1)} MB more memory, then up ${megabytes[1]?.toFixed(1)} MB more`);
      ratios.push({ name: `client-size-python-${how}-mb`, value: (up - before) / 1_000_000, goal: 15, atMost: true });
    }
    return ratios;
  } finally {
    await app.close();
  }
}

async function sizes(context: BenchmarkContext, folder: string): Promise<Ratio[]> {
  const program = join(root, 'packages/kit/bin/kit.js');
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--conditions=source', program, 'client', 'typescript', '--out', join(folder, 'api.ts')],
    { cwd: join(root, 'examples/orders'), encoding: 'utf8', env: { ...process.env, DATA_FOLDER: join(folder, 'data') } },
  );
  if (status !== 0) throw new Error(stderr);
  const packed = async (name: string, text: string): Promise<number> => {
    const input = join(folder, `${name}.ts`);
    writeFileSync(input, text);
    const bundle = await rolldown({ input, platform: 'browser' });
    const { output } = await bundle.generate({ format: 'esm', minify: true });
    await bundle.close();
    return gzipSync(output[0].code).length / 1000;
  };
  const whole = await packed('whole', "export { createClient, isProblem, etagOf } from './api.ts';");
  const one = await packed(
    'one',
    "import { connect, orderRetrieve } from './api.ts'; export const read = (id: string) => orderRetrieve(connect(), { id });",
  );
  context.print(`TypeScript, compressed: every operation ${whole.toFixed(1)} kB, one call ${one.toFixed(1)} kB`);
  return [
    { name: 'client-size-whole-kb', value: whole, goal: 12, atMost: true },
    { name: 'client-size-one-call-kb', value: one, goal: 4, atMost: true },
  ];
}

export default defineBenchmark({
  name: 'client-size',
  question: 'How large is a generated TypeScript client in a page, and how much memory do 60 MB take in Python?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-client-size-'));
    try {
      return [...(await sizes(context, folder)), ...(await memory(context, folder))];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
