// Opens N event streams over bare sockets and reports, for every event, when the last of them had it. A process of its own, so that
// reading thousands of sockets does not compete with the server for a core.
import { connect, type Socket } from 'node:net';

const [port = '0', count = '0', path = '/', token = ''] = process.argv.slice(2);
const total = Number(count);
const request = `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`;
const sockets: Socket[] = [];
let received = 0;

/** Counts whole events; one may arrive in pieces, or with others. */
function subscribe(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(request));
    sockets.push(socket);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('a stream was closed')));
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.includes('data: {')) return;
      received += 1;
      if (received <= total) resolve();
      if (received % total === 0) process.send?.({ lastAt: performance.timeOrigin + performance.now() });
    });
  });
}

// In waves: a listener's queue of pending connections is shorter than the number of subscribers.
for (let at = 0; at < total; at += 128) await Promise.all(Array.from({ length: Math.min(128, total - at) }, subscribe));
process.on('disconnect', () => process.exit(0));
