// A receiver that reads each request to its end and answers 204, the least a real one does; requests to /hang are never answered.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serving } from '../harness/server-process.ts';

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  request.resume();
  if (request.url === '/hang') return;
  request.on('end', () => response.writeHead(204).end());
});
server.listen(0, '127.0.0.1', () => serving((server.address() as AddressInfo).port));
