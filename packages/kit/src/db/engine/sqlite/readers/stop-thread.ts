// The thread of a reader process that listens to the parent while SQLite runs: it sets the flag that the running statement looks at, and ends
// the process when the parent is gone.
import { Socket } from 'node:net';
import { workerData } from 'node:worker_threads';

/** The descriptor of the pipe, as `Reader` passes it: after the standard ones and the channel of messages. */
const PIPE = 4;

const stopped = workerData as Int32Array;
let rest = Buffer.alloc(0);

new Socket({ fd: PIPE, readable: true, writable: false })
  .on('data', (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    for (; rest.length >= 4; rest = rest.subarray(4)) Atomics.store(stopped, 0, rest.readInt32LE());
  })
  // Not process.exit(): it waits for the statement that runs.
  .on('close', () => process.kill(process.pid, 'SIGKILL'))
  .on('error', () => undefined);
