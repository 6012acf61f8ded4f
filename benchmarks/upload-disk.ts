// How fast does a file arrive in the disk store, compared with a bare `pipeline(request, createWriteStream)` that computes the same checksum?
// Files of 64 MB over loopback, each announced and sent to its own signed address; both sides flush the file before they answer.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';

const MIB = 1024 * 1024;

interface Target {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export default defineBenchmark({
  name: 'upload-disk',
  question: 'megabytes per second into the disk store, against a bare pipeline into a file with the same checksum',
  async run(context) {
    const folder = await mkdtemp(join(tmpdir(), 'kit-bench-uploads-'));
    const file = randomBytes((context.quick ? 16 : 64) * MIB);
    const checksum = createHash('sha256').update(file).digest('base64');
    const servers: ServerProcess[] = [];
    const start = async (script: string) => {
      const server = await startServer(new URL(script, import.meta.url), { args: [join(folder, script.includes('kit') ? 'kit' : 'bare')] });
      servers.push(server);
      return server;
    };
    try {
      const [kit, bare] = [await start('./servers/upload-kit.ts'), await start('./servers/upload-bare.ts')];
      const announce = async (): Promise<Target> => {
        const body = JSON.stringify({
          filename: 'a.bin',
          content_type: 'application/octet-stream',
          size: file.length,
          checksum_sha256: checksum,
        });
        const response = await fetch(`http://127.0.0.1:${kit.port}/v1/uploads`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        });
        const { url, headers } = (await response.json()) as { url: string; headers: Record<string, string> };
        return { path: url, headers };
      };
      const toBare = async (): Promise<Target> => ({
        path: '/',
        headers: { 'x-checksum': checksum, 'content-length': String(file.length) },
      });
      const result = await contest(context, [
        { name: 'kit', measure: (seconds) => megabytesPerSecond(kit.port, file, announce, seconds) },
        { name: 'bare pipeline', measure: (seconds) => megabytesPerSecond(bare.port, file, toBare, seconds) },
      ]);
      return [{ name: 'upload-disk-vs-bare', value: ratioOf(result, 'kit', 'bare pipeline'), goal: 0.8 }];
    } finally {
      for (const server of servers) await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
});

/** One file after the other, so that the receiver is what limits. */
async function megabytesPerSecond(port: number, file: Buffer, target: () => Promise<Target>, seconds: number): Promise<number> {
  let sent = 0;
  let spent = 0;
  while (spent < seconds * 1000) {
    const address = await target();
    const began = performance.now();
    await put(port, address, file);
    spent += performance.now() - began;
    sent += file.length;
  }
  return sent / MIB / (spent / 1000);
}

function put(port: number, { path, headers }: Target, file: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, method: 'PUT', headers }, (response) => {
      response
        .resume()
        .once('end', () => (response.statusCode === 204 ? resolve() : reject(new Error(`The server answered ${response.statusCode}.`))));
    });
    request.once('error', reject);
    request.end(file);
  });
}
