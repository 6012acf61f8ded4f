import { createServer, type IncomingMessage } from 'node:http';
import { verifySignature } from 'kit/webhooks/verify';
import { freePort } from './free-port.ts';

export interface DemoReceiver {
  readonly url: string;
  /** The signing secret exists once the endpoint does. */
  trust(secret: string): void;
  stop(): Promise<void>;
}

/** What another team would run: takes webhooks, verifies them, deduplicates by `webhook-id`, and shows the last ones on GET. */
export async function startReceiver(): Promise<DemoReceiver> {
  let secret: string | undefined;
  const received = new Map<string, object>();
  const server = createServer((request, response) => {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body, null, 2)}\n`);
    };
    if (request.method === 'GET') return answer(200, [...received.values()]);
    void bodyOf(request).then(
      (body) => {
        try {
          verifySignature(secret ?? '', request.headers, body);
        } catch {
          return answer(401, { verified: false });
        }
        const id = String(request.headers['webhook-id']);
        received.set(id, { verified: true, webhook_id: id, ...(JSON.parse(body.toString()) as object) });
        for (const oldest of received.keys()) if (received.size > 20) received.delete(oldest);
        return answer(200, { verified: true });
      },
      () => response.destroy(),
    );
  });
  const port = await freePort(9000);
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${port}/`,
    trust: (value) => (secret = value),
    stop: () => new Promise((done) => server.close(() => done())),
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
