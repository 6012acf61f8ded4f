// How fast does a receiver verify a message, compared with the `standardwebhooks` package and with the least code that
// is correct on bare node:crypto (key object made beforehand, one secret, one signature)? Body of 1 KiB, as received: bytes.
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { verifySignature } from 'kit/webhooks/verify';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';
import { installPeers, peerUrl } from './harness/peers.ts';

type StandardWebhooks = {
  Webhook: new (secret: string) => { verify(body: Buffer, headers: Record<string, string>, options: { jsonParse: boolean }): unknown };
};

const keyBytes = Buffer.alloc(32, 7);
const key = createSecretKey(keyBytes);
const secret = `whsec_${keyBytes.toString('base64')}`;
const body = Buffer.from(JSON.stringify({ type: 'order.paid', timestamp: '2026-01-02T03:04:05.000Z', data: { note: 'x'.repeat(940) } }));

function signedNow(): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(body).digest('base64');
  return {
    host: 'localhost',
    'content-type': 'application/json',
    'webhook-id': 'msg_1',
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
}

function bareVerify(headers: Record<string, string>): void {
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '', 'webhook-signature': signature = '' } = headers;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) throw new Error('too old');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const given = Buffer.from(signature.slice(3), 'base64');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw new Error('no match');
}

export default defineBenchmark({
  name: 'webhook-verify',
  question: 'How fast is verifySignature next to standardwebhooks and bare node:crypto?',
  async run(context) {
    const peers = installPeers({ standardwebhooks: '1.1.1' }, (line) => context.print(line));
    const { Webhook } = (await import(peerUrl(peers, 'standardwebhooks'))) as StandardWebhooks;
    const standard = new Webhook(secret);
    const contender = (name: string, verify: (headers: Record<string, string>) => unknown) => ({
      name,
      measure(seconds: number): Promise<number> {
        const headers = signedNow();
        return ratePerSecond(() => verify(headers), seconds);
      },
    });
    const result = await contest(context, [
      contender('kit', (headers) => verifySignature(secret, headers, body)),
      contender('standardwebhooks', (headers) => standard.verify(body, headers, { jsonParse: false })),
      contender('bare node:crypto', (headers) => bareVerify(headers)),
    ]);
    return [
      { name: 'webhook-verify-vs-standardwebhooks', value: ratioOf(result, 'kit', 'standardwebhooks'), goal: 2 },
      { name: 'webhook-verify-vs-bare', value: ratioOf(result, 'kit', 'bare node:crypto'), goal: 0.8 },
    ];
  },
});
