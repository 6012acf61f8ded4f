import { once } from 'node:events';
import { coreErrors } from '../../errors/core-errors.ts';
import { prepareHeaders, renderFailure, type AnswerPlan } from './answer.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { compileProjection } from '../json/project.ts';
import { openStreamsOf } from '../admit/open-streams.ts';
import { beatRegularly } from './heartbeats.ts';
import type { ResponseCheck } from './response-check.ts';
import type { ServerSentEvent } from '../declare/server-sent-event.ts';

/** Proxies close connections that are silent for 30 to 60 s. */
const HEARTBEAT_MS = 15_000;
const HEARTBEAT = Buffer.from(':\n\n');
/** How long the headers wait for the first event. Until they leave, an error is an ordinary answer. */
const OPENING_MS = 1000;

/** A proxy may end the response of a server that died as if it were complete. The clients of a finite stream wait for this event. */
const END = 'end';

type Step = IteratorResult<ServerSentEvent, unknown> | 'silence';

/**
 * Sends events as they come. The permission was decided before this is called; one that needs an object must be settled by the generator
 * before its first event. Nothing is sent until the first event or a second of silence, so a 404 or 403 of the generator is a normal answer;
 * an error after that ends the stream with an `error` event. The generator is always finalised: end, error, disconnect or shutdown.
 */
export async function sendStream(
  exchange: Exchange,
  plan: AnswerPlan,
  events: AsyncIterable<ServerSentEvent>,
  check?: ResponseCheck,
  route: CompiledRoute = exchange.route as CompiledRoute,
): Promise<void> {
  const { signal } = exchange;
  const close = openStreamsOf(exchange.host).add(exchange);
  const iterator = events[Symbol.asyncIterator]();
  const writer = new EventWriter(exchange, plan, route);
  try {
    for (;;) {
      const step = await nextStep(iterator, signal, writer);
      if (step === 'silence' || step.done === true) break;
      await writer.event(step.value, check);
      if (writer.hasEnded) break;
    }
    if (signal.aborted && !writer.hasEnded) writer.stop();
    else writer.end();
  } catch (error) {
    if (!writer.isOpen) throw error;
    writer.fail(error);
  } finally {
    writer.close();
    close();
    await finalise(exchange, iterator);
  }
}

/** The next event; `silence` when the client or the server ends the stream. One promise and no timer, because thousands of idle streams wait here. */
function nextStep(iterator: AsyncIterator<ServerSentEvent>, signal: AbortSignal, writer: EventWriter): Promise<Step> {
  if (signal.aborted) return Promise.resolve('silence');
  const opening = writer.isOpen ? undefined : writer.openAfterSilence();
  return new Promise((resolve, reject) => {
    const stop = (): void => settle('silence');
    const settle = (step: Step): void => {
      clearTimeout(opening);
      signal.removeEventListener('abort', stop);
      resolve(step);
    };
    signal.addEventListener('abort', stop);
    // Where the wait is given up, a late rejection ends here.
    iterator.next().then(settle, (error: unknown) => {
      reject(error);
      settle('silence');
    });
  });
}

/** A generator that ignores `signal` while it waits cannot be finalised before it wakes up: shutdown waits for it, this request does not. */
async function finalise(exchange: Exchange, iterator: AsyncIterator<ServerSentEvent>): Promise<void> {
  const finalised = Promise.resolve(iterator.return?.(undefined)).catch((error: unknown) => {
    exchange.log.error({ err: error, operation: exchange.route?.operationId }, 'a stream could not be finalised');
  });
  exchange.host.track(finalised);
  if (!exchange.signal.aborted) await finalised;
}

class EventWriter {
  isOpen = false;
  /** The last event of a finite stream was written: whatever follows, the client has all of it. */
  hasEnded = false;
  readonly #exchange: Exchange;
  readonly #plan: AnswerPlan;
  readonly #route: CompiledRoute;
  readonly #project: (value: unknown) => unknown;
  #endHeartbeats: (() => void) | undefined;

  constructor(exchange: Exchange, plan: AnswerPlan, route: CompiledRoute) {
    this.#exchange = exchange;
    this.#plan = plan;
    this.#route = route;
    this.#project = projectionOf(route);
  }

  #open(): void {
    if (this.isOpen) return;
    const { reply } = this.#exchange;
    prepareHeaders(this.#exchange, this.#plan);
    reply.header('content-type', 'text/event-stream; charset=utf-8');
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-cache, no-transform');
    // Buffering proxies would hold events back.
    reply.header('x-accel-buffering', 'no');
    // A header Node refuses is still an ordinary error here; once the reply is taken over it would not be.
    for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value);
    reply.hijack();
    this.isOpen = true;
    // They leave together with the first bytes: a body without a byte is that of a stream without an event.
    reply.raw.writeHead(this.#route.status);
    this.#endHeartbeats = beatRegularly(this.#heartbeatMs, this);
  }

  get #heartbeatMs(): number {
    return this.#route.route.options.heartbeatMs ?? HEARTBEAT_MS;
  }

  close(): void {
    this.#endHeartbeats?.();
  }

  /** Without an event the headers leave with the first heartbeat; until then an error is an ordinary answer. */
  openAfterSilence(): NodeJS.Timeout {
    const opening = setTimeout(
      () => {
        this.heartbeat();
        // Of a permission that is not decided yet.
        if (!this.isOpen) opening.refresh();
      },
      Math.min(OPENING_MS, this.#heartbeatMs),
    );
    return opening;
  }

  /** Waits while the client reads slower than events come. */
  async event(event: ServerSentEvent, check: ResponseCheck | undefined): Promise<void> {
    this.#requireVerdict();
    const data = this.#project(event.data);
    check?.(this.#exchange, JSON.stringify(data) ?? 'null');
    const text = formatEvent({ ...event, data });
    this.#open();
    this.hasEnded = this.#route.ends && event.event === END;
    const { raw } = this.#exchange.reply;
    if (!raw.write(text)) await this.#drained();
  }

  /** The generator may have a connection of the database in hand: it does not wait forever. */
  async #drained(): Promise<void> {
    const { reply, signal, host, log, route } = this.#exchange;
    const { clientIdleMs } = host.inputLimits;
    const cut = setTimeout(() => {
      log.warn({ operation: route?.operationId }, `a stream was cut: its client took nothing for ${clientIdleMs} ms`);
      reply.raw.destroy();
    }, clientIdleMs);
    await once(reply.raw, 'drain', { signal }).catch(() => undefined);
    clearTimeout(cut);
  }

  heartbeat(): void {
    // An undecided permission keeps the headers back however long it takes.
    if (this.#exchange.verdict !== true) return;
    this.#open();
    const { raw } = this.#exchange.reply;
    if (!raw.writableNeedDrain && !raw.writableEnded && !raw.destroyed) raw.write(HEARTBEAT);
  }

  #requireVerdict(): void {
    if (this.#exchange.verdict === true) return;
    const facts = { operation: this.#route.operationId, permission: this.#route.permission.name };
    this.#exchange.log.error(facts, 'stream sent an event before authorize(object); request denied');
    throw coreErrors.permission_denied();
  }

  end(): void {
    this.#requireVerdict();
    this.#open();
    if (this.#route.ends && !this.hasEnded) this.#exchange.reply.raw.write(formatEvent({ event: END, data: null }));
    this.#exchange.reply.raw.end();
  }

  /** The client is gone, or the server stops: then it says so, and the client reconnects elsewhere. */
  stop(): void {
    if (this.#exchange.reply.raw.destroyed) return;
    if (!this.isOpen) throw this.#exchange.signal.reason;
    this.fail(this.#exchange.signal.reason);
  }

  /** The terminal event: the same document an ordinary answer would have had. */
  fail(error: unknown): void {
    const rendered = renderFailure(this.#exchange, this.#plan, error);
    const { raw } = this.#exchange.reply;
    if (!raw.destroyed) raw.end(formatEvent({ event: 'error', data: rendered.document }));
  }
}

function projectionOf(route: CompiledRoute): (value: unknown) => unknown {
  const known = projections.get(route);
  if (known !== undefined) return known;
  const projection = route.response === undefined ? (value: unknown) => value : compileProjection(route.response.json);
  projections.set(route, projection);
  return projection;
}

const projections = new WeakMap<CompiledRoute, (value: unknown) => unknown>();

/** https://html.spec.whatwg.org/multipage/server-sent-events.html. Line breaks in names or ids would start another field, so they go. */
export function formatEvent({ data, event, id, retryMs }: ServerSentEvent): string {
  let text = '';
  if (event !== undefined) text += `event: ${oneLine(event)}\n`;
  if (id !== undefined) text += `id: ${oneLine(id)}\n`;
  if (retryMs !== undefined) text += `retry: ${Math.max(0, Math.round(retryMs))}\n`;
  return `${text}data: ${JSON.stringify(data) ?? 'null'}\n\n`;
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ');
}
