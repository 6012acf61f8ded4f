import { connect, type ChannelModel, type ConfirmChannel } from 'amqplib';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { aFunction, required, secret, text } from '../../../options/value-rule.ts';
import { destination, type Destination, type DestinationMessage, type SharedOptions, sharedRules } from './destination.ts';
import { KeptConnection } from './kept-connection.ts';

export interface RabbitMqDestinationOptions extends SharedOptions {
  /** `amqps://user:password@rabbitmq.example.com/vhost`. */
  readonly url: string;
  /** An exchange that exists. Empty: the default exchange, whose routing keys are names of queues. */
  readonly exchange: string;
  /** Default: the type of the event. */
  readonly routingKey?: (message: Pick<DestinationMessage, 'type' | 'orderingKey'>) => string;
}

const rules: OptionRules<RabbitMqDestinationOptions> = {
  ...sharedRules,
  url: required(secret('a URL: amqp://… or amqps://…', (value) => typeof value === 'string' && /^amqps?:\/\//.test(value))),
  exchange: required(text),
  routingKey: aFunction,
};

interface Open {
  readonly model: ChannelModel;
  readonly channel: ConfirmChannel;
  /** Messages that no queue has taken: they come back before they are confirmed. */
  readonly returned: Set<string>;
}

const SOCKET = { timeout: 10_000, keepAlive: true, keepAliveDelay: 10_000 } as const;

/**
 * Publishes to an exchange of RabbitMQ with publisher confirms. A message counts as sent when the broker has confirmed it; messages are persistent, and one that no
 * queue takes is a failed attempt.
 */
export function rabbitMqDestination(options: RabbitMqDestinationOptions): Destination {
  const { url, exchange, routingKey = typeOf, ...shared } = readOptions('rabbitMqDestination()', options, rules);
  const connection: KeptConnection<Open> = new KeptConnection(
    async () => {
      const model = await connect(url, SOCKET);
      // Without a listener the error ends the process. A close always follows.
      model.on('error', () => undefined);
      const channel = await model.createConfirmChannel();
      const open: Open = { model, channel, returned: new Set() };
      channel.on('error', () => undefined);
      channel.on('close', () => void connection.drop(open));
      channel.on('return', ({ properties }) => open.returned.add(String(properties.messageId)));
      return open;
    },
    ({ model }) => model.close(),
  );
  return destination({
    ...shared,
    async send(message, signal) {
      const open = await connection.get();
      // A host that vanished without a word confirms nothing: the next attempt gets a connection of its own.
      signal.addEventListener('abort', () => void connection.drop(open), { once: true });
      await published(open, exchange, routingKey(message), message);
    },
    async check() {
      if (exchange === '') return null;
      const { model } = await connection.get();
      const channel = await model.createChannel();
      channel.on('error', () => undefined);
      try {
        await channel.checkExchange(exchange);
        await channel.close();
        return null;
      } catch {
        return `there is no exchange "${exchange}".`;
      }
    },
    close: () => connection.close(),
  });
}

const typeOf = ({ type }: Pick<DestinationMessage, 'type'>): string => type;

function published({ channel, returned }: Open, exchange: string, routingKey: string, message: DestinationMessage): Promise<void> {
  const { id, type, headers, body } = message;
  const { 'content-type': contentType = 'application/json', ...others } = headers;
  return new Promise((resolve, reject) => {
    const confirmed = (error: unknown): void => {
      const isReturned = returned.delete(id);
      if (error !== null && error !== undefined) reject(new Error('RabbitMQ rejected the message.', { cause: error }));
      else if (isReturned) reject(new Error(`No queue takes the routing key ${routingKey}.`));
      else resolve();
    };
    const properties = { messageId: id, type, contentType, headers: amqpHeaders(others), persistent: true, mandatory: true };
    channel.publish(exchange, routingKey, body, properties, confirmed);
  });
}

/** As the AMQP binding of CloudEvents names the attributes. */
function amqpHeaders(headers: DestinationMessage['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replace(/^ce-/, 'cloudEvents_'), value]));
}
