// A bare node:http server that keeps every answer open as an event stream and writes one event to all of them when told to:
// the least memory and the fastest fan-out Node offers.
import { appendFileSync, readFileSync, watchFile } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serving } from '../harness/server-process.ts';

const [trigger = '', stamps = ''] = process.argv.slice(2);
const open = new Set<ServerResponse>();
let generation = 1;
let content = readFileSync(trigger, 'utf8');
const event = (): string =>
  `id: ${generation}\nevent: generation\ndata: ${JSON.stringify({ application: 'a', profile: 'b', generation })}\n\n`;
const server = createServer((_, response) => {
  open.add(response);
  response.once('close', () => open.delete(response));
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  response.write(event());
});
watchFile(trigger, { interval: 50 }, () => {
  // A save is seen twice when the file is looked at between truncation and write.
  const now = readFileSync(trigger, 'utf8');
  if (now === content || now === '') return;
  content = now;
  generation += 1;
  appendFileSync(stamps, `${performance.timeOrigin + performance.now()}\n`);
  const bytes = Buffer.from(event());
  for (const response of open) response.write(bytes);
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => serving((server.address() as AddressInfo).port));
