import { type Agent, request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

export interface Exchanged {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One request, its path sent exactly as written: neither normalised nor encoded. */
export function exchange(
  url: string,
  path: string,
  options: { token?: string; method?: string; headers?: Record<string, string>; agent?: Agent } = {},
): Promise<Exchanged> {
  const { hostname, port } = new URL(url);
  const headers = { ...options.headers, ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }) };
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method: options.method ?? 'GET', headers, agent: options.agent ?? false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (body += chunk));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }));
      answer.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** Writes bytes to a fresh socket and reads until the peer closes or `quietMs` pass without a byte. */
export function exchangeRaw(port: number, bytes: string | Buffer, quietMs = 1_000): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    const finish = (): void => {
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(quietMs, finish);
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', finish);
    socket.on('connect', () => socket.write(bytes));
  });
}

/** Every byte of an answer but its Date header, which tells the time and nothing else. */
export function withoutDate(raw: string): string {
  return raw.replace(/^date:.*\r\n/im, '');
}
