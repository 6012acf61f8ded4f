import type { Socket } from 'node:net';

/** `HTTP/1.1 100`, which is all that must be seen to know it. */
const START = /^HTTP\/1\.[01] 100[ \r]/;
const START_BYTES = 13;
/** Where the status begins; that of nearly every answer begins with 2, 3, 4 or 5. */
const STATUS_AT = 9;
const DIGIT_1 = 0x31;
const HEAD_END = Buffer.from('\r\n\r\n');
/** Longer heads are given to the client, which refuses them. */
const HEAD_BYTES_MAX = 16 * 1024;

/**
 * Takes `100 Continue` out of what a socket reads at the start of an answer. A client must accept it unasked (RFC 9110, 15.2); undici closes the
 * connection instead. The connection carries one request at a time, so after a write the next bytes are the start of an answer.
 */
export function skipContinue<S extends Socket>(socket: S): S {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket) as (chunk: unknown, encoding: unknown, written: unknown) => boolean;
  let isAtStart = false;
  let kept: Buffer | null = null;

  const rest = (bytes: Buffer): Buffer | null => {
    let left = bytes;
    for (;;) {
      if (left.length >= START_BYTES && left[STATUS_AT] !== DIGIT_1) return left;
      if (left.length < START_BYTES && 'HTTP/1.1 100 '.startsWith(left.toString('latin1').replace('1.0', '1.1'))) break;
      if (!START.test(left.toString('latin1', 0, START_BYTES))) return left;
      const end = left.indexOf(HEAD_END);
      if (end === -1 && left.length > HEAD_BYTES_MAX) return left;
      if (end === -1) break;
      left = left.subarray(end + HEAD_END.length);
      if (left.length === 0) return null;
    }
    kept = left;
    return null;
  };

  socket.write = (chunk: unknown, encoding?: unknown, written?: unknown) => {
    isAtStart = true;
    return write(chunk, encoding, written);
  };
  socket.read = (size?: number): unknown => {
    const chunk = read(size) as Buffer | null;
    if (!isAtStart || chunk === null) return chunk;
    const bytes: Buffer = kept === null ? chunk : Buffer.concat([kept, chunk]);
    kept = null;
    const left = rest(bytes);
    // After a whole 100 the real answer is still to come.
    if (left !== null) isAtStart = false;
    return left;
  };
  return socket;
}
