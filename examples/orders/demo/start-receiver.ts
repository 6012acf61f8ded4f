import { createServer, type IncomingMessage } from 'node:http';
import { verifySignature } from 'kit/webhooks/verify';
import { freePort } from './free-port.ts';
import { receiverPage, type ReceivedMessage } from './receiver-page.ts';

export interface DemoReceiver {
  readonly url: string;
  /** Takes webhooks at a path from now on; the signing secret exists once the endpoint does. */
  trust(path: string, secret: string): void;
  stop(): Promise<void>;
}

/** At this path nothing is ever taken: an endpoint that fails is worth seeing on the admin site. */
export const BROKEN_PATH = '/broken';
/** The page loads itself again: nothing else runs, and nothing is loaded from elsewhere. */
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'cache-control': 'no-store',
};
/** Messages stored per path. */
const KEPT_MAX = 20;

/** What other teams would run: takes webhooks, verifies them, deduplicates by `webhook-id`, and shows the last ones on GET. */
export async function startReceiver(): Promise<DemoReceiver> {
  const secrets = new Map<string, string>();
  const received: Record<string, Map<string, ReceivedMessage>> = Object.create(null);
  const at = (path: string): Map<string, ReceivedMessage> => (received[path] ??= new Map());
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body, null, 2)}\n`);
    };
    if (path === BROKEN_PATH) return answer(503, { error: 'The warehouse system is being restarted.' });
    if (request.method === 'GET') {
      const messages = [...at(path).values()];
      if (!(request.headers.accept ?? '').includes('text/html')) return answer(200, messages);
      response.writeHead(200, PAGE_HEADERS).end(receiverPage(messages));
      return;
    }
    void bodyOf(request).then(
      (body) => {
        try {
          verifySignature(secrets.get(path) ?? '', request.headers, body);
        } catch {
          return answer(401, { verified: false });
        }
        const id = String(request.headers['webhook-id']);
        const { type, timestamp, data } = JSON.parse(body.toString()) as Pick<ReceivedMessage, 'type' | 'timestamp' | 'data'>;
        at(path).set(id, { verified: true, webhook_id: id, type, timestamp, data });
        for (const oldest of at(path).keys()) if (at(path).size > KEPT_MAX) at(path).delete(oldest);
        return answer(200, { verified: true });
      },
      () => response.destroy(),
    );
  });
  const port = await freePort(9000);
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${port}/`,
    trust: (path, secret) => void secrets.set(path, secret),
    stop: () => new Promise((done) => server.close(() => done())),
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
