import { expect, test } from 'vitest';
import { webhooks } from '../module.ts';
import { destination } from './destination.ts';
import { cloudEvents } from './envelope.ts';
import { natsDestination } from './nats-destination.ts';
import { rabbitMqDestination } from './rabbitmq-destination.ts';
import { redisStreamDestination } from './redis-stream-destination.ts';
import { sendToDestination } from './send-to-destination.ts';

const send = () => Promise.resolve();
const event = { id: 'a', type: 'order.paid', timestamp: new Date(0), data: '{}', orderingKey: null, traceparent: null };

test('a declaration that cannot work is rejected at startup, with every problem', () => {
  expect(() => destination({ name: 'Orders!', send, events: ['order paid'], schedule: [-1], rateLimit: 'fast' })).toThrow(
    /name[\s\S]*events[\s\S]*schedule[\s\S]*rateLimit/,
  );
  expect(() => destination({ name: 'a', sned: send } as never)).toThrow(/"sned"/);
  expect(() => natsDestination({ name: 'a' } as never)).toThrow(/connection/);
  expect(() => rabbitMqDestination({ name: 'a', url: 'http://x', exchange: 'events' })).toThrow(/amqp/);
  expect(() => redisStreamDestination({ name: 'a', client: {} as never })).toThrow(/ioredis/);
  expect(() => cloudEvents({ source: 'no uri' })).toThrow(/source/);
  expect(() => webhooks({ destinations: [destination({ name: 'a', send }), destination({ name: 'a', send })] })).toThrow(/"a" twice/);
  expect(() => webhooks({ destinations: [{ name: 'a', send }] as never })).toThrow(/destination\(/);
});

test('a password in the URL of RabbitMQ is not part of the message', () => {
  expect(() => rabbitMqDestination({ name: 'a', url: 'https://user:hunter2@host', exchange: '' })).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('hunter2') as string }) as Error,
  );
});

test('a destination that does not return is given up after the time of the attempt, and gets an aborted signal', async () => {
  let signal: AbortSignal | undefined;
  const hanging = destination({ name: 'a', send: (_message, given) => new Promise(() => void (signal = given)) });
  expect(await sendToDestination(hanging, event, 20)).toMatchObject({ kind: 'failure', reason: 'timeout' });
  expect(signal?.aborted).toBe(true);
});

test('whatever a destination throws is a failed attempt', async () => {
  for (const thrown of [new Error('no'), 'no', undefined, { message: 'no' }]) {
    const throwing = destination({
      name: 'a',
      send: () => {
        throw thrown;
      },
    });
    expect(await sendToDestination(throwing, event, 1000)).toMatchObject({ kind: 'failure', reason: 'connection' });
  }
});
