// Opens streams of live lists over bare sockets, each as a caller of its own, and reports when all of them have their list, and for each change when the last of
// those that it concerns has it: node followers.ts <port> <streams> <streams of each room>. A process of its own, so that it does not compete with the server for a core.
import { connect, type Socket } from 'node:net';

const [port = '0', count = '0', each = '1'] = process.argv.slice(2);
const total = Number(count);
const ofRoom = Number(each);
const sockets: Socket[] = [];
let told = 0;

function follow(index: number): Promise<void> {
  const room = Math.floor(index / ofRoom);
  const request = `GET /v1/live?room=${room} HTTP/1.1\r\nhost: x\r\nx-owner: ${index + 1}\r\naccept: text/event-stream\r\n\r\n`;
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(request));
    sockets.push(socket);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('a stream was closed')));
    let hasList = false;
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.includes('event: ready')) return;
      if (!hasList) {
        hasList = true;
        return resolve();
      }
      told += 1;
      if (told % ofRoom === 0) process.send?.({ lastAt: performance.timeOrigin + performance.now() });
    });
  });
}

// In waves: a listener's queue of pending connections is shorter than the number of streams.
for (let at = 0; at < total; at += 100)
  await Promise.all(Array.from({ length: Math.min(100, total - at) }, (_, index) => follow(at + index)));
process.send?.({ lastAt: performance.timeOrigin + performance.now() });
process.on('disconnect', () => process.exit(0));
