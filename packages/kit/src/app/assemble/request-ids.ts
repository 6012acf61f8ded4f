import { randomBytes } from 'node:crypto';

/** Unique across processes by the random part, cheap by the counter; safe in headers and log lines. */
export function requestIds(): () => string {
  const process = randomBytes(9).toString('hex');
  let count = 0;
  return () => {
    count += 1;
    return `${process}-${count.toString(36)}`;
  };
}
