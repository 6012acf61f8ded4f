import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import type { Section } from '../section/section.ts';
import { COMMON_HEADERS } from './response.ts';
import type { Credential } from './token-table.ts';

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = Buffer.from(': \n\n');
const RETRY = 'retry: 3000\n';
/** How long the last event of an ended stream may take to be read. */
const LINGER_MS = 500;

/** Proxies that buffer responses would delay events; `X-Accel-Buffering` asks them not to. */
export const STREAM_HEADERS: readonly string[] = ['Content-Type', 'text/event-stream', ...COMMON_HEADERS, 'X-Accel-Buffering', 'no'];

/** An open stream. It holds no document and no queue: during a write it remembers only the last number written. */
class Subscriber {
  readonly section: Section;
  readonly digest: string;
  readonly response: ServerResponse;
  sentGeneration = 0;
  /** True while an event is being written, and until the first one was sent. */
  writing = true;
  /** The stream was ended before its first event was sent. */
  ending = false;
  readonly onWritten: () => void;

  constructor(section: Section, digest: string, response: ServerResponse, onWritten: (subscriber: Subscriber) => void) {
    this.section = section;
    this.digest = digest;
    this.response = response;
    this.onWritten = () => onWritten(this);
  }
}

/** Every open stream of the process. */
export class StreamHub {
  readonly #bySection = new Map<string, Set<Subscriber>>();
  /** Streams requested while another response occupied their connection, by connection. */
  readonly #queued = new WeakMap<Socket, Subscriber[]>();
  #open = 0;
  readonly #clock: Clock;
  #stopHeartbeat: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get open(): number {
    return this.#open;
  }

  /**
   * Counts against the ceiling at once and returns the function that starts the stream: headers, the current generation, then
   * every later one until either side ends.
   */
  reserve(section: Section, credential: Credential, response: ServerResponse): () => void {
    const subscriber = new Subscriber(section, credential.digest, response, this.#written);
    let subscribers = this.#bySection.get(section.key);
    if (subscribers === undefined) this.#bySection.set(section.key, (subscribers = new Set()));
    subscribers.add(subscriber);
    this.#open++;
    response.once('close', () => this.#remove(subscriber));
    response.on('error', ignoreError);
    if (response.socket === null) this.#followConnection(subscriber);
    // A peer that left and one that only stops sending look the same until something is written. A slot must not be kept for the first.
    else response.socket.once('end', () => this.#end(subscriber));
    this.#stopHeartbeat ??= this.#clock.after(HEARTBEAT_MS, () => this.#sendHeartbeats());
    return () => this.#start(subscriber);
  }

  /** Sends the current generation to every stream of a section. */
  publish(section: Section): void {
    const subscribers = this.#bySection.get(section.key);
    if (subscribers === undefined) return;
    const event = Buffer.from(eventOf(section));
    for (const subscriber of subscribers) if (!subscriber.writing) this.#write(subscriber, event);
  }

  /** Ends the streams for which `keep` returns false. */
  closeUnless(keep: (section: Section, digest: string) => boolean): void {
    for (const subscribers of this.#bySection.values()) {
      for (const subscriber of subscribers) if (!keep(subscriber.section, subscriber.digest)) this.#end(subscriber);
    }
  }

  closeAll(): void {
    this.#pauseHeartbeat();
    this.closeUnless(() => false);
  }

  #start(subscriber: Subscriber): void {
    const { response, section } = subscriber;
    if (response.destroyed || response.writableEnded) return;
    // The end of a stream is the end of its connection, so chunks would frame nothing: without them an event is one write instead of
    // three.
    response.removeHeader('Transfer-Encoding');
    response.shouldKeepAlive = false;
    response.writeHead(200, STREAM_HEADERS as string[]);
    this.#write(subscriber, Buffer.from(RETRY + eventOf(section)));
    if (subscriber.ending) this.#end(subscriber);
  }

  #write(subscriber: Subscriber, bytes: Buffer): void {
    subscriber.writing = true;
    subscriber.sentGeneration = subscriber.section.installed.generation;
    subscriber.response.write(bytes, subscriber.onWritten);
  }

  /** The peer has read the last event. If there were newer generations meanwhile, only the newest is sent. */
  readonly #written = (subscriber: Subscriber): void => {
    subscriber.writing = false;
    const { response, section } = subscriber;
    if (response.writableEnded || response.destroyed) return;
    if (subscriber.sentGeneration < section.installed.generation) this.#write(subscriber, Buffer.from(eventOf(section)));
  };

  #end(subscriber: Subscriber): void {
    const { response, sentGeneration, writing } = subscriber;
    if (sentGeneration === 0) {
      // Its headers are not sent yet: node would send others.
      subscriber.ending = true;
      return;
    }
    response.end();
    // A reader that stopped reading would keep its connection and its slot forever.
    if (writing) this.#clock.after(LINGER_MS, () => response.destroy());
  }

  #pauseHeartbeat(): void {
    this.#stopHeartbeat?.();
    this.#stopHeartbeat = undefined;
  }

  /** One timer for all streams: a timer each would cost more memory than the rest of a subscriber. */
  #sendHeartbeats(): void {
    this.#stopHeartbeat = this.#clock.after(HEARTBEAT_MS, () => this.#sendHeartbeats());
    for (const subscribers of this.#bySection.values()) {
      for (const subscriber of subscribers) {
        if (subscriber.writing) continue;
        subscriber.writing = true;
        subscriber.response.write(HEARTBEAT, subscriber.onWritten);
      }
    }
  }

  /** On Node 22 a queued response gets no `close` event when its connection closes: its slot would never be freed. */
  #followConnection(subscriber: Subscriber): void {
    const { socket } = subscriber.response.req;
    const queued = this.#queued.get(socket);
    if (queued !== undefined) {
      queued.push(subscriber);
      return;
    }
    const subscribers = [subscriber];
    this.#queued.set(socket, subscribers);
    socket.once('end', () => subscribers.forEach((each) => this.#end(each)));
    socket.once('close', () => subscribers.forEach((each) => this.#remove(each)));
  }

  #remove(subscriber: Subscriber): void {
    const subscribers = this.#bySection.get(subscriber.section.key);
    if (!subscribers?.delete(subscriber)) return;
    this.#open--;
    if (subscribers.size === 0) this.#bySection.delete(subscriber.section.key);
    if (this.#open === 0) this.#pauseHeartbeat();
  }
}

function eventOf(section: Section): string {
  const { application, profile } = section.definition;
  const { generation } = section.installed;
  return `id: ${generation}\nevent: generation\ndata: ${JSON.stringify({ application, profile, generation })}\n\n`;
}

function ignoreError(): void {
  // The peer is gone; the 'close' event that follows does the cleanup.
}
