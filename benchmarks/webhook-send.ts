// What do the address policy, the deadline and the classification of results cost? Signing and sending with our
// transport, compared with a bare loop that signs and POSTs with the same HTTP client; receiver in its own process.
// Counted per second of this process's CPU time: the receiver and the machine's other tenants do not enter into it.
import { createHmac, createSecretKey } from 'node:crypto';
import { Pool } from 'undici';
import { signedHeaders, signingKey } from '../packages/kit/src/contrib/webhooks/signature.ts';
import { httpTransport } from '../packages/kit/src/contrib/webhooks/transport.ts';
import { URLPolicy } from '../packages/kit/src/contrib/webhooks/url-policy.ts';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';
import { startServer } from './harness/server-process.ts';

const CONCURRENCY = 32;
const keyBytes = Buffer.alloc(32, 7);
const body = Buffer.from(JSON.stringify({ type: 'order.paid', timestamp: '2026-01-02T03:04:05.000Z', data: { note: 'x'.repeat(940) } }));

async function ratePerCpuSecond(operation: () => Promise<void>, seconds: number): Promise<number> {
  const [before, start] = [process.cpuUsage(), performance.now()];
  const rate = await ratePerSecond(operation, seconds, CONCURRENCY);
  const wallMicros = (performance.now() - start) * 1000;
  const { user, system } = process.cpuUsage(before);
  return rate * (wallMicros / (user + system));
}

export default defineBenchmark({
  name: 'webhook-send',
  question: 'What share of a bare sign-and-POST loop does our transport reach, per CPU second?',
  async run(context) {
    const receiver = await startServer(new URL('./receivers/webhook-receiver.ts', import.meta.url));
    const origin = `http://127.0.0.1:${receiver.port}`;
    const bareKey = createSecretKey(keyBytes);
    const keys = [signingKey(`whsec_${keyBytes.toString('base64')}`)];
    const pool = new Pool(origin, { connections: 2 * CONCURRENCY });
    const transport = httpTransport({ policy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) });

    const sendBare = async (): Promise<void> => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      const signature = createHmac('sha256', bareKey).update(`msg_1.${timestamp}.`).update(body).digest('base64');
      const headers = {
        'content-type': 'application/json',
        'webhook-id': 'msg_1',
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      };
      const response = await pool.request({ path: '/hooks', method: 'POST', headers, body });
      await response.body.dump();
      if (response.statusCode !== 204) throw new Error(`the receiver answered ${response.statusCode}`);
    };
    const send = async (): Promise<void> => {
      const signed = signedHeaders(keys, { id: 'msg_1', timestamp: Math.floor(Date.now() / 1000), body });
      const result = await transport.send({ url: `${origin}/hooks`, headers: { 'content-type': 'application/json', ...signed }, body });
      if (result.kind !== 'response' || result.status !== 204) throw new Error(`the attempt ended as ${JSON.stringify(result)}`);
    };
    try {
      const result = await contest(context, [
        { name: 'kit', measure: (seconds) => ratePerCpuSecond(send, seconds) },
        { name: 'bare undici', measure: (seconds) => ratePerCpuSecond(sendBare, seconds) },
      ]);
      return [{ name: 'webhook-send-vs-bare', value: ratioOf(result, 'kit', 'bare undici'), goal: 0.9 }];
    } finally {
      await Promise.all([pool.destroy(), transport.close(), receiver.stop()]);
    }
  },
});
