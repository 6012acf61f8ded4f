// A bare node:http server that answers every request with one constant buffer: the most Node can do.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serving } from '../harness/server-process.ts';

const body = readFileSync(process.argv[2] ?? '');
const headers = ['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(body.length)];
const server = createServer((_, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
server.listen(0, '127.0.0.1', () => serving((server.address() as AddressInfo).port));
