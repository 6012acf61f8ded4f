// A finite stream with ids and one without: serve-counts.ts <port> <folder for its clients> <dies>. With `dies` it kills itself in the middle of a stream.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { allowAny, Controller, createApp, route, type ServerSentEvent } from 'kit';
import { type ClientOptions, generateClient } from 'kit/openapi';

const [, , port, folder = '', dies] = process.argv;
const [COUNT, DIES_AFTER] = [100, 42];
const Numbered = z.strictObject({ number: z.int() });

async function* count(from: number, hasIds: boolean): AsyncGenerator<ServerSentEvent<{ number: number }>> {
  for (let number = from; number <= COUNT; number += 1) {
    yield { data: { number }, ...(hasIds ? { id: String(number) } : {}) };
    if (number !== DIES_AFTER || dies !== 'dies') continue;
    // What was written leaves the process at the end of the turn; the kernel sends it.
    await nextTurn();
    process.kill(process.pid, 'SIGKILL');
  }
}

class CountController extends Controller {
  numbered = route.stream('/numbered', { permission: allowAny, response: Numbered, ends: true }, ({ request }) =>
    count(Number(request.headers['last-event-id'] ?? 0) + 1, true),
  );
  plain = route.stream('/plain', { permission: allowAny, response: Numbered, ends: true }, () => count(1, false));
}

const app = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/counts': CountController } } });
const write = (file: string, language: ClientOptions['language']) =>
  writeFileSync(join(folder, file), generateClient(app.routes, { title: 'Counts', version: '1', language }));
write('api.ts', 'typescript');
write('api.py', 'python');
await app.listen({ host: '127.0.0.1', port: Number(port) });
process.stdout.write('listens\n');
