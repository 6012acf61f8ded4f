// A receiver that reads each request to its end and answers 204; requests to /hang are never answered. It speaks just enough HTTP for that,
// because it shares the machine with what is measured: node:http took 70 µs of CPU per request, as much as the database does.
import { createServer, type AddressInfo } from 'node:net';
import { serving } from '../harness/server-process.ts';

const ANSWER = Buffer.from('HTTP/1.1 204 No Content\r\n\r\n');

const server = createServer({ noDelay: true }, (socket) => {
  let unread: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
    for (let headEnd = unread.indexOf('\r\n\r\n'); headEnd !== -1; headEnd = unread.indexOf('\r\n\r\n')) {
      const head = unread.toString('latin1', 0, headEnd);
      const end = headEnd + 4 + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (unread.length < end) return;
      unread = unread.subarray(end);
      if (!head.startsWith('POST /hang ')) socket.write(ANSWER);
    }
  });
  socket.on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', () => serving((server.address() as AddressInfo).port));
