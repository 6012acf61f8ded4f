import { RemoteSourceError } from './errors.ts';
import { EventStreamReader, type StreamEvent } from './event-stream.ts';
import { checkMediaType, connectionError, openExchange, statusError } from './exchange.ts';
import type { SectionAddress } from './options.ts';

/** One event of the stream: the section now has this generation. */
export interface Generation {
  /** The application of the section. */
  readonly application: string;
  /** The profile of the section. */
  readonly profile: string;
  /** Counts the changes of the section since the server started. */
  readonly generation: number;
}

export interface ReadOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
  readonly silenceMs: number;
  readonly lastGeneration: number | undefined;
}

/** Reads one connection until it fails or ends. `onEvent` also gets the server's advice for reconnecting. */
export async function readGenerations(
  address: SectionAddress,
  options: ReadOptions,
  onEvent: (event: Generation, retryMs: number | undefined) => void,
): Promise<never> {
  const cut = new AbortController();
  const signal = AbortSignal.any([cut.signal, options.signal]);
  let late = new RemoteSourceError('timeout', `${address.base} did not open the stream in ${options.timeout} ms`);
  let timer = setTimeout(() => cut.abort(), options.timeout);
  try {
    const { lastGeneration } = options;
    const headers = {
      accept: 'text/event-stream',
      'accept-encoding': 'identity',
      ...(lastGeneration === undefined ? {} : { 'last-event-id': String(lastGeneration) }),
    };
    const response = await openExchange(address, '/stream', headers, signal);
    try {
      const failure = statusError(response, [200], address);
      if (failure !== undefined) throw failure;
      checkMediaType(response, 'text/event-stream', address);
      clearTimeout(timer);
      late = new RemoteSourceError('silence', `the stream of ${address.base} was silent for ${options.silenceMs} ms`);
      timer = setTimeout(() => cut.abort(), options.silenceMs);
      const reader = new EventStreamReader();
      for await (const chunk of response) {
        timer.refresh();
        const event = reader.push(chunk as Buffer).findLast((candidate) => candidate.event === 'generation');
        if (event !== undefined) onEvent(parseGenerationEvent(event, address), reader.retryMs);
      }
    } finally {
      response.destroy();
    }
    throw new RemoteSourceError('ended', `${address.base} ended the stream`);
  } catch (error) {
    if (cut.signal.aborted) throw late;
    throw connectionError(error, address);
  } finally {
    clearTimeout(timer);
  }
}

function parseGenerationEvent({ data }: StreamEvent, address: SectionAddress): Generation {
  const { application, profile } = address;
  try {
    const parsed = JSON.parse(data) as Partial<Generation>;
    const { generation } = parsed;
    if (parsed.application === application && parsed.profile === profile && Number.isSafeInteger(generation) && generation! >= 0) {
      return { application, profile, generation: generation! };
    }
  } catch {
    // Falls through to the one answer for anything that is not an event of this section.
  }
  throw new RemoteSourceError('invalid-event', `the stream of ${address.base} sent something that is not an event of this section`);
}
