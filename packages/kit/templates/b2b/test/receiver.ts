import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifySignature } from 'kit/webhooks/verify';

interface WebhookEvent {
  readonly type: string;
  readonly data: unknown;
}

/** A receiver of webhooks on this machine: it verifies each request and remembers its event. */
export async function startReceiver() {
  const secrets = new Map<string, string>();
  const events: (WebhookEvent & { readonly path: string })[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [path, body] = [request.url ?? '', Buffer.concat(chunks)];
      try {
        verifySignature(secrets.get(path) ?? '', request.headers, body);
        events.push({ path, ...(JSON.parse(body.toString()) as WebhookEvent) });
        response.writeHead(204).end();
      } catch {
        response.writeHead(401).end();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    /** The secret that the events at a path are signed with. */
    trust: (path: string, secret: string) => void secrets.set(path, secret),
    /** The types of the events that arrived at a path. */
    typesAt: (path: string) => events.filter((event) => event.path === path).map(({ type }) => type),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
