import { jetstream, jetstreamManager, StorageType } from '@nats-io/jetstream';
import { connect, headers as natsHeaders, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { aFunction, anObject, required } from '../../../options/value-rule.ts';
import {
  destination,
  type Destination,
  type DestinationMessage,
  type SharedOptions,
  sharedRules,
  UndeliverableMessage,
} from './destination.ts';
import { KeptConnection } from './kept-connection.ts';

export interface NatsDestinationOptions extends SharedOptions {
  /** As `connect()` of `@nats-io/transport-node` takes it: `{ servers: 'nats://…' }`. */
  readonly connection: NodeConnectionOptions;
  /** Default: `events.order.paid`, and with an ordering key `events.order.paid.<key>`. A stream of JetStream must take it. */
  readonly subject?: (message: Pick<DestinationMessage, 'type' | 'orderingKey'>) => string;
}

const rules: OptionRules<NatsDestinationOptions> = { ...sharedRules, connection: required(anObject), subject: aFunction };

/** Longer than an attempt: the attempt has its own end, and a confirmation that comes later is not an error of the connection. */
const CONFIRMED_WITHIN_MS = 60_000;

/**
 * Publishes to a stream of NATS JetStream; a message counts as sent when the stream has confirmed it. The message id is the id of the event, so the stream drops what is
 * sent again within its `duplicate_window`.
 */
export function natsDestination(options: NatsDestinationOptions): Destination {
  const { connection: given, subject = subjectOf, ...shared } = readOptions('natsDestination()', options, rules);
  const connection = new KeptConnection<NatsConnection>(
    () => connect({ timeout: 10_000, maxReconnectAttempts: -1, ...given }),
    (open) => open.close(),
  );
  return destination({
    ...shared,
    async send(message) {
      const open = await connection.get();
      if (open.isClosed()) {
        await connection.drop(open);
        throw new Error('The connection to NATS was closed.');
      }
      const { max_payload: bytesMax = Infinity } = open.info ?? {};
      if (message.body.length > bytesMax)
        throw new UndeliverableMessage(`The message is larger than max_payload of the server (${bytesMax} bytes).`);
      const headers = natsHeaders();
      for (const [name, value] of Object.entries(message.headers)) headers.set(name, value);
      // Another attempt is the schedule's.
      await jetstream(open).publish(subject(message), message.body, {
        msgID: message.id,
        headers,
        timeout: CONFIRMED_WITHIN_MS,
        retries: 0,
      });
    },
    async check() {
      const [type = 'kit.check'] = shared.events?.filter((each) => !each.includes('*')) ?? [];
      const place = subject({ type, orderingKey: null });
      const manager = await jetstreamManager(await connection.get());
      const name = await manager.streams.find(place).catch(() => null);
      if (name === null) return `no stream of JetStream takes the subject ${place}.`;
      const { config } = await manager.streams.info(name);
      return config.storage === StorageType.Memory ? `the stream ${name} keeps its messages in memory. Create it with storage=file.` : null;
    },
    close: () => connection.close(),
  });
}

function subjectOf({ type, orderingKey }: Pick<DestinationMessage, 'type' | 'orderingKey'>): string {
  return orderingKey === null ? `events.${type}` : `events.${type}.${subjectToken(orderingKey)}`;
}

/** One token: letters, digits, `_` and `-` as they are, the rest as `=` and hexadecimal bytes, so that different keys stay different. */
function subjectToken(key: string): string {
  return key
    .toWellFormed()
    .replaceAll(/[^A-Za-z0-9_-]/gu, (character) =>
      [...Buffer.from(character)].map((byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
    );
}
