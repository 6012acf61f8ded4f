import type { Socket } from 'node:net';

/** Eight times the body that is read, so that one of tiny chunks, six bytes for each byte of it, is still read to its end. */
export const ANSWER_BYTES_MAX = 512 * 1024;

/**
 * Ends a connection whose answer is longer than `ANSWER_BYTES_MAX` as it is on the wire. The limits of headers and of the body do not count
 * informational responses and the extensions of chunks: a receiver that sends them as fast as it can takes all of the worker's time.
 * The connection carries one request at a time, so after a write the next bytes are the start of an answer.
 */
export function boundAnswer<S extends Socket>(socket: S, tooLong: () => Error): S {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket) as (chunk: unknown, encoding: unknown, written: unknown) => boolean;
  let received = 0;
  socket.write = (chunk: unknown, encoding?: unknown, written?: unknown) => {
    received = 0;
    return write(chunk, encoding, written);
  };
  socket.read = (size?: number): unknown => {
    const chunk = read(size) as Buffer | null;
    if (chunk === null) return null;
    received += chunk.length;
    if (received <= ANSWER_BYTES_MAX) return chunk;
    socket.destroy(tooLong());
    return null;
  };
  return socket;
}
