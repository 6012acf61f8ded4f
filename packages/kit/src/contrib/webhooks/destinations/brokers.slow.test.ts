import { AckPolicy, jetstream, jetstreamManager, StorageType, DiscardPolicy } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { connect as connectRabbit } from 'amqplib';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  NATS_SERVER,
  RABBITMQ_SERVER,
  REDIS_SERVER,
  startNats,
  startRabbitMq,
  startRedis,
  type Broker,
} from '../../../../../../test/provision/broker.ts';
import { describeOutbox, LOOPBACK, type Outbox } from '../../../../test/webhooks/outbox.ts';
import { deliverDue, startWorker } from '../delivery/deliver.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';
import type { Destination } from './destination.ts';
import { cloudEvents } from './envelope.ts';
import { natsDestination } from './nats-destination.ts';
import { rabbitMqDestination } from './rabbitmq-destination.ts';
import { redisStreamDestination } from './redis-stream-destination.ts';

// `.ci/run` installs the packages.
test('the brokers are installed where everything must be tested', () => {
  expect(
    [NATS_SERVER, RABBITMQ_SERVER, REDIS_SERVER].every((each) => each !== undefined) || process.env['KIT_REQUIRE_BROKERS'] === undefined,
  ).toBe(true);
});

interface Stored {
  readonly id: string;
  readonly type: string;
  readonly body: string;
}

interface Made {
  readonly destinations: readonly Destination[];
  close(): Promise<unknown>;
}

/** One kind of broker, as the test sees it. */
interface Kind {
  readonly name: string;
  readonly program: string | undefined;
  start(): Promise<Broker>;
  /** Stream, queue or nothing; room for `max` messages where the broker has such a limit. */
  prepare(broker: Broker, max?: number): Promise<void>;
  /** Makes room for more. */
  makeRoom(broker: Broker): Promise<void>;
  destinations(broker: Broker): Promise<Made>;
  /** What consumers would read, from the beginning. */
  read(broker: Broker): Promise<Stored[]>;
}

const NATS: Kind = {
  name: 'NATS JetStream',
  program: NATS_SERVER,
  start: startNats,
  async prepare({ url }, max = -1) {
    const connection = await connectNats({ servers: url });
    const manager = await jetstreamManager(connection);
    const config = { name: 'EVENTS', subjects: ['events.>'], storage: StorageType.File, discard: DiscardPolicy.New, max_msgs: max };
    await manager.streams.add(config).catch(() => manager.streams.update('EVENTS', config));
    await connection.close();
  },
  makeRoom: (broker) => NATS.prepare(broker),
  async destinations({ url }) {
    return { destinations: [natsDestination({ name: 'broker', connection: { servers: url } })], close: () => Promise.resolve() };
  },
  async read({ url }) {
    const connection = await connectNats({ servers: url });
    const manager = await jetstreamManager(connection);
    const { state } = await manager.streams.info('EVENTS');
    const stored: Stored[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
      const message = await manager.streams.getMessage('EVENTS', { seq });
      if (message === null) continue;
      const [, ...type] = message.subject.split('.');
      stored.push({
        id: message.header.get('webhook-id').slice('msg_'.length),
        type: type.slice(0, 2).join('.'),
        body: new TextDecoder().decode(message.data),
      });
    }
    await connection.close();
    return stored;
  },
};

const QUEUE = 'kit-events';
const RABBIT: Kind = {
  name: 'RabbitMQ',
  program: RABBITMQ_SERVER,
  start: startRabbitMq,
  async prepare({ url }, max) {
    const connection = await connectRabbit(url);
    const channel = await connection.createChannel();
    await channel.assertExchange('events', 'topic', { durable: true });
    const limits = max === undefined ? {} : { 'x-max-length': max, 'x-overflow': 'reject-publish' };
    const queue = max === undefined ? QUEUE : 'kit-small';
    await channel.assertQueue(queue, { durable: true, arguments: limits });
    if (max !== undefined) await channel.unbindQueue(QUEUE, 'events', '#').catch(() => undefined);
    await channel.bindQueue(queue, 'events', '#');
    await connection.close();
  },
  async makeRoom({ url }) {
    const connection = await connectRabbit(url);
    const channel = await connection.createChannel();
    await channel.unbindQueue('kit-small', 'events', '#');
    await channel.bindQueue(QUEUE, 'events', '#');
    await connection.close();
  },
  async destinations({ url }) {
    return { destinations: [rabbitMqDestination({ name: 'broker', url, exchange: 'events' })], close: () => Promise.resolve() };
  },
  async read({ url }) {
    const connection = await connectRabbit(url);
    const stored: Stored[] = [];
    for (const queue of [QUEUE, 'kit-small']) {
      const channel = await connection.createChannel();
      channel.on('error', () => undefined);
      const exists = await channel.checkQueue(queue).then(
        () => true,
        () => false,
      );
      for (let message = exists ? await channel.get(queue) : false; message !== false; message = await channel.get(queue)) {
        const { messageId, type } = message.properties;
        stored.push({ id: String(messageId), type: String(type), body: message.content.toString() });
      }
      // Unacknowledged messages go back to the queue.
    }
    await connection.close();
    return stored;
  },
};

const redisClient = async (url: string) => {
  const client = createClient({ url, disableOfflineQueue: true, socket: { reconnectStrategy: 100 } });
  client.on('error', () => undefined);
  await client.connect();
  return client;
};

const REDIS: Kind = {
  name: 'Redis streams',
  program: REDIS_SERVER,
  start: () => startRedis(),
  async prepare({ url }, max) {
    const client = await redisClient(url);
    const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await client.sendCommand(['CONFIG', 'SET', 'maxmemory', max === undefined ? '0' : String(used)]);
    client.destroy();
  },
  makeRoom: (broker) => REDIS.prepare(broker),
  async destinations({ url }) {
    const client = createClient({ url, disableOfflineQueue: true, socket: { reconnectStrategy: 100 } });
    client.on('error', () => undefined);
    await client.connect();
    return {
      destinations: [redisStreamDestination({ name: 'broker', client })],
      close: () => Promise.resolve(client.destroy()),
    };
  },
  async read({ url }) {
    const client = await redisClient(url);
    const entries = (await client.sendCommand(['XRANGE', 'events', '-', '+'])) as unknown as readonly [string, readonly string[]][];
    client.destroy();
    return entries.map(([, fields]) => {
      const value = (name: string): string => fields[fields.indexOf(name) + 1] ?? '';
      return { id: value('id'), type: value('type'), body: value('body') };
    });
  },
};

function bind(outbox: Outbox, destinations: readonly Destination[]): void {
  unbindWebhooks(outbox.db);
  useWebhooks(outbox.db, {
    urlPolicy: LOOPBACK,
    jitter: false,
    destinations,
    timeoutMs: 2000,
    schedule: Array.from({ length: 40 }, () => 1),
    pollIntervalMs: 50,
  });
}

describe.each([NATS, RABBIT, REDIS])('$name', (kind) => {
  describe.runIf(kind.program !== undefined)('delivers', () => {
    // One for both databases: RabbitMQ takes 8 s to start.
    let broker: Broker;
    beforeAll(async () => {
      broker = await kind.start();
      // RabbitMQ listens before it is ready.
      await vi.waitFor(() => kind.prepare(broker), { timeout: 60_000, interval: 500 });
    });
    afterAll(() => broker?.close());

    describeOutbox('events', (outbox) => {
      const { clock, publish, deliveries } = outbox;
      let made: Made;
      const shop = { owner: 'nobody' };

      beforeAll(async () => {
        made = await kind.destinations(broker);
        bind(outbox, made.destinations);
        await deliverDue(outbox.db);
      });
      afterAll(() => made?.close());

      /** Sends what is due until everything has succeeded; the clock goes on by a second each time. */
      const deliverAll = async (ids: readonly string[]): Promise<void> => {
        await vi.waitFor(
          async () => {
            clock.advance(1000);
            await deliverDue(outbox.db);
            const rows = await Promise.all(ids.map((event) => deliveries({ event })));
            expect(rows.flat().filter(({ status }) => status !== 'succeeded')).toEqual([]);
          },
          { timeout: 120_000, interval: 200 },
        );
      };
      const stored = async (ids: readonly string[]): Promise<string[]> =>
        (await kind.read(broker)).map(({ id }) => id).filter((id) => ids.includes(id));

      test('each event is stored once, under its id, with the body of webhooks', async () => {
        const id = await publish('order.paid', shop, { total: 12 });
        await deliverAll([id]);
        expect((await kind.read(broker)).filter((each) => each.id === id)).toEqual([
          { id, type: 'order.paid', body: `{"type":"order.paid","timestamp":"${clockOf(id)}","data":{"total":12}}` },
        ]);
        expect(await deliveries({ event: id })).toMatchObject([{ status: 'succeeded', attempts: 1 }]);
      });

      test('events of one key are stored in the order of their publication', async () => {
        const ids: string[] = [];
        for (let n = 0; n < 10; n++) ids.push(await publish('order.paid', { ...shop, orderingKey: 'order:1 ü' }, { n }));
        await deliverAll(ids);
        expect(await stored(ids)).toEqual(ids);
      });

      test('a broker that is killed and comes back has lost nothing that was confirmed, and gets the rest', async () => {
        const ids: string[] = [];
        for (let n = 0; n < 20; n++) ids.push(await publish('order.paid', shop, { n }));
        await deliverAll(ids.slice(0, 10));
        await broker.kill();
        for (let n = 0; n < 10; n++) ids.push(await publish('order.paid', shop, { n }));
        clock.advance(1000);
        await deliverDue(outbox.db);
        const waiting = (await Promise.all(ids.slice(20).map((event) => deliveries({ event })))).flat();
        expect(waiting.every(({ status, attempts }) => status === 'pending' && attempts > 0)).toBe(true);
        await broker.start();
        await deliverAll(ids);
        expect(new Set(await stored(ids))).toEqual(new Set(ids));
      });

      test('a broker that does not answer is a timeout, and gets the message afterwards', async () => {
        broker.pause();
        const id = await publish('order.paid', shop);
        await deliverDue(outbox.db);
        expect(await deliveries({ event: id })).toMatchObject([{ status: 'pending', failure_reason: 'timeout' }]);
        broker.resume();
        await deliverAll([id]);
        expect(new Set(await stored([id]))).toEqual(new Set([id]));
      });

      test('a broker that is full rejects messages, and gets them when it has room', async () => {
        const kept = await kind.read(broker);
        await kind.prepare(broker, kind === RABBIT ? 1 : kept.length + 1);
        const ids: string[] = [];
        for (let n = 0; n < 6; n++) ids.push(await publish('order.paid', shop, { n }));
        await deliverDue(outbox.db);
        const rows = (await Promise.all(ids.map((event) => deliveries({ event })))).flat();
        expect(rows.some(({ status, failure_reason: reason }) => status === 'pending' && reason === 'connection')).toBe(true);
        await kind.makeRoom(broker);
        await deliverAll(ids);
        expect(new Set(await stored(ids))).toEqual(new Set(ids));
      });

      test('a worker that runs sends what is published while it runs', async () => {
        const worker = await startWorker(outbox.db);
        const id = await publish('order.paid', shop);
        await vi.waitFor(async () => expect(await deliveries({ event: id })).toMatchObject([{ status: 'succeeded' }]), { timeout: 30_000 });
        await worker.stop();
      });

      function clockOf(id: string): string {
        return new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toISOString();
      }
    });
  });
});

describe.runIf(NATS_SERVER !== undefined)('NATS', () => {
  test('the stream drops what is sent twice; CloudEvents are in its headers; a subject without a stream is a failure', async () => {
    const broker = await startNats();
    const connection = await connectNats({ servers: broker.url });
    const envelope = cloudEvents({ source: '/orders', binary: true });
    const event = { id: 'e-1', type: 'order.paid', orderingKey: 'a b', timestamp: new Date(0), data: '{"n":1}' };
    const sent = natsDestination({ name: 'nats', envelope, connection: { servers: broker.url } });
    const message = { ...event, ...envelope.pack(event) };
    try {
      expect(await sent.check(new AbortController().signal)).toMatch(/no stream of JetStream/);
      await expect(sent.send(message, new AbortController().signal)).rejects.toThrow(/no responders|stream|503/i);
      const manager = await jetstreamManager(connection);
      await manager.streams.add({ name: 'MEMORY', subjects: ['events.>'], storage: StorageType.Memory });
      expect(await sent.check(new AbortController().signal)).toMatch(/keeps its messages in memory/);
      await manager.streams.delete('MEMORY');
      await manager.streams.add({ name: 'EVENTS', subjects: ['events.>'], storage: StorageType.File });
      expect(await sent.check(new AbortController().signal)).toBeNull();
      await sent.send(message, new AbortController().signal);
      await sent.send(message, new AbortController().signal);
      expect((await manager.streams.info('EVENTS')).state.messages).toBe(1);
      await manager.consumers.add('EVENTS', { durable_name: 'reader', ack_policy: AckPolicy.Explicit });
      const read = await (await jetstream(connection).consumers.get('EVENTS', 'reader')).next();
      expect(read?.subject).toBe('events.order.paid.a=20b');
      expect(read?.headers?.get('ce-id')).toBe('e-1');
      expect(new TextDecoder().decode(read?.data)).toBe('{"n":1}');
    } finally {
      await sent.close();
      await connection.close();
      await broker.close();
    }
  });
});

describe.runIf(RABBITMQ_SERVER !== undefined)('RabbitMQ', () => {
  test('a message that no queue takes, and an exchange that does not exist, are failures; CloudEvents are headers', async () => {
    const broker = await startRabbitMq();
    const connection = await vi.waitFor(() => connectRabbit(broker.url), { timeout: 60_000, interval: 500 });
    const channel = await connection.createChannel();
    const envelope = cloudEvents({ source: '/orders', binary: true });
    const event = { id: 'e-1', type: 'order.paid', orderingKey: null, timestamp: new Date(0), data: '{"n":1}' };
    const message = { ...event, ...envelope.pack(event) };
    const sent = rabbitMqDestination({ name: 'rabbit', envelope, url: broker.url, exchange: 'events' });
    const signal = new AbortController().signal;
    try {
      expect(await sent.check(signal)).toBe('there is no exchange "events".');
      await expect(sent.send(message, signal)).rejects.toThrow(/rejected|closed/i);
      await channel.assertExchange('events', 'topic', { durable: true });
      await expect(sent.send(message, signal)).rejects.toThrow('No queue takes the routing key order.paid.');
      await channel.assertQueue('q', { durable: true });
      await channel.bindQueue('q', 'events', 'order.*');
      await sent.send(message, signal);
      expect(await sent.check(signal)).toBeNull();
      const read = await channel.get('q', { noAck: true });
      expect(read === false ? null : read.properties).toMatchObject({
        messageId: 'e-1',
        type: 'order.paid',
        deliveryMode: 2,
        headers: { cloudEvents_id: 'e-1' },
      });
    } finally {
      await sent.close();
      await connection.close();
      await broker.close();
    }
  });
});

describe.runIf(REDIS_SERVER !== undefined)('Redis', () => {
  test.each([
    ['without an append-only file', { appendOnly: false }, /appendonly yes/],
    ['that evicts streams', { settings: ['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'] }, /noeviction/],
  ])('a server %s gets no events, and that is said at startup', async (_name, options, sentence) => {
    const broker = await startRedis(options);
    const client = await redisClient(broker.url);
    const sent = redisStreamDestination({ name: 'redis', client });
    const signal = new AbortController().signal;
    try {
      expect(await sent.check(signal)).toMatch(sentence);
      await expect(sent.send({ id: 'a', type: 'a', orderingKey: null, headers: {}, body: Buffer.from('{}') }, signal)).rejects.toThrow(
        sentence,
      );
      expect(await client.sendCommand(['XLEN', 'events'])).toBe(0);
    } finally {
      client.destroy();
      await broker.close();
    }
  });
});
