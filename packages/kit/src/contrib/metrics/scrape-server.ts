import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Log } from '../../http/log.ts';
import { nodeHttp } from '../../http/exchange/node-http.ts';

export interface ScrapeSource {
  readonly contentType: string;
  text(): Promise<string>;
}

export interface ScrapeServer {
  /** `http://127.0.0.1:9464/metrics` */
  readonly url: string;
  close(): Promise<void>;
}

/** A scrape is one small request; a client that takes longer to send it is not Prometheus. */
const REQUEST_MS_MAX = 10_000;
const CONNECTIONS_MAX = 32;

/** Serves `GET /metrics` and nothing else on a port of its own. */
export async function startScrapeServer(
  source: ScrapeSource,
  { host, port }: { readonly host: string; readonly port: number },
  log: Log,
): Promise<ScrapeServer> {
  const isLoopback = host === '127.0.0.1' || host === '::1' || host === 'localhost';
  const server = nodeHttp.createServer({ requestTimeout: REQUEST_MS_MAX, headersTimeout: REQUEST_MS_MAX }, (request, response) => {
    answer(source, isLoopback, request, response).catch((error: unknown) => {
      log.error({ err: error }, 'the metrics could not be written');
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, host, port);
  server.unref();
  const shown = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${shown}:${(server.address() as AddressInfo).port}/metrics`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  const listening = once(server, 'listening');
  server.listen(port, host);
  try {
    await listening;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const hint =
      code === 'EADDRINUSE'
        ? 'It is in use: another process of this application may have it. Give each its own port.'
        : `It cannot be used (${code}).`;
    throw new Error(`metrics(): cannot listen on ${host} port ${port}. ${hint}`, { cause: error });
  }
}

async function answer(source: ScrapeSource, isLoopback: boolean, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const refuse = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) =>
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(`${text}\n`);
  // A page in a browser on this machine could make a name of its own point here; it cannot choose the name it asks for.
  if (isLoopback && !isLoopbackName(request.headers.host)) return void refuse(403, 'Ask for the address, not for another name of it.');
  if (request.url?.split('?', 1)[0] !== '/metrics') return void refuse(404, 'The metrics are at /metrics.');
  if (request.method !== 'GET' && request.method !== 'HEAD') return void refuse(405, 'Use GET.', { allow: 'GET, HEAD' });
  const text = await source.text();
  response.writeHead(200, { 'content-type': source.contentType, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  response.end(text);
}

function isLoopbackName(host: string | undefined): boolean {
  return host === undefined || /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?$/i.test(host);
}
