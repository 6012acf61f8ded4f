import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { describeOutbox, LOOPBACK } from '../../../../test/webhooks/outbox.ts';
import { deliverDue } from '../delivery/deliver.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';
import { destination, UndeliverableMessage, type Destination } from './destination.ts';

const GUIDE = join(import.meta.dirname, '../../../../../../docs/guide/webhooks-brokers.md');

interface Sent {
  readonly topic: string;
  readonly messages: readonly { readonly key: string; readonly value: Buffer; readonly headers: Readonly<Record<string, string>> }[];
}

/** A double, not Kafka: it shows that the code of the guide calls its producer as it should. */
class ProducerDouble {
  readonly sent: Sent[] = [];
  connects = 0;
  isDown = false;

  async connect(): Promise<void> {
    this.connects++;
    if (this.isDown) throw new Error('no broker');
  }

  async disconnect(): Promise<void> {}

  async send(record: Sent): Promise<void> {
    this.sent.push(record);
  }
}

/** The function of the guide, as it is printed there. */
async function ofGuide(): Promise<(producer: ProducerDouble, topic: string) => Destination> {
  const [, code = ''] = /```ts\n(import \{ destination, UndeliverableMessage[\s\S]*?)```/.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  const { stripTypeScriptTypes } = await import('node:module');
  const body = stripTypeScriptTypes(code.replace(/^import[^\n]*\n/, '')).replaceAll('export function', 'function');
  // oxlint-disable-next-line typescript/no-implied-eval -- it is the code of our own page
  return new Function('destination', 'UndeliverableMessage', `${body}\nreturn kafkaDestination;`)(destination, UndeliverableMessage);
}

describeOutbox('a destination of your own, against a double of its producer', (outbox) => {
  afterAll(() => {
    unbindWebhooks(outbox.db);
    useWebhooks(outbox.db, { urlPolicy: LOOPBACK });
  });

  test('the example of the guide sends each event once, with its key, and connects again after a failure', async () => {
    const producer = new ProducerDouble();
    const kafkaDestination = await ofGuide();
    unbindWebhooks(outbox.db);
    useWebhooks(outbox.db, { urlPolicy: LOOPBACK, jitter: false, schedule: [1, 1], destinations: [kafkaDestination(producer, 'events')] });
    await deliverDue(outbox.db);
    producer.isDown = true;
    const id = await outbox.publish('order.paid', { owner: 'nobody', orderingKey: 'order:1' }, { total: 12 });
    await deliverDue(outbox.db);
    expect(producer.sent).toEqual([]);
    producer.isDown = false;
    outbox.clock.advance(1000);
    await deliverDue(outbox.db);
    await deliverDue(outbox.db);
    expect(producer.sent).toHaveLength(1);
    expect(producer.sent[0]).toMatchObject({
      topic: 'events',
      messages: [{ key: 'order:1', headers: { 'webhook-id': `msg_${id}`, type: 'order.paid' } }],
    });
    expect(JSON.parse(producer.sent[0]?.messages[0]?.value.toString() ?? '')).toMatchObject({ type: 'order.paid', data: { total: 12 } });
  });
});
