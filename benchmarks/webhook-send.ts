// What do the address policy, the deadline and the classification of results cost? Signing and sending with our
// transport, compared with a bare loop that signs and POSTs with the same HTTP client; receiver in its own process.
// Counted per second of this process's CPU time: the receiver and the machine's other tenants do not enter into it.
import { signedHeaders, signingKey } from '../packages/kit/src/contrib/webhooks/signing/signature.ts';
import { httpTransport } from '../packages/kit/src/contrib/webhooks/network/transport.ts';
import { URLPolicy } from '../packages/kit/src/contrib/webhooks/network/url-policy.ts';
import { bareLoop, MESSAGE, SECRET } from './deliverers/bare-loop.ts';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';
import { startServer } from './harness/server-process.ts';

const CONCURRENCY = 32;
const body = Buffer.from(JSON.stringify(MESSAGE));

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
    const receiver = await startServer(new URL('./receivers/webhook-receiver.ts', import.meta.url), { isUnderTest: false });
    const origin = `http://127.0.0.1:${receiver.port}`;
    const keys = [signingKey(`whsec_${SECRET.toString('base64')}`)];
    const bare = bareLoop(origin, 2 * CONCURRENCY);
    const transport = httpTransport({ policy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) });

    const send = async (): Promise<void> => {
      const signed = signedHeaders(keys, { id: 'msg_1', timestamp: Math.floor(Date.now() / 1000), body });
      const result = await transport.send({ url: `${origin}/`, headers: { 'content-type': 'application/json', ...signed }, body });
      if (result.kind !== 'response' || result.status !== 204) throw new Error(`the attempt ended as ${JSON.stringify(result)}`);
    };
    try {
      const result = await contest(context, [
        { name: 'kit', measure: (seconds) => ratePerCpuSecond(send, seconds) },
        { name: 'bare undici', measure: (seconds) => ratePerCpuSecond(() => bare.send(), seconds) },
      ]);
      return [{ name: 'webhook-send-vs-bare', value: ratioOf(result, 'kit', 'bare undici'), goal: 0.9 }];
    } finally {
      await Promise.all([bare.close(), transport.close(), receiver.stop()]);
    }
  },
});
