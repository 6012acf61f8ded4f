// A bare node:http server that keeps every response open as an event stream, after one event: the least memory that Node offers.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serving } from '../../harness/server-process.ts';

const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write('event: ready\ndata: {}\n\n');
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => serving((server.address() as AddressInfo).port));
