import { createConnection, type NetConnectOpts, type Socket } from 'node:net';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { inSpan } from '../../../observe/tracing.ts';
import { InvalidOptions, objectOf, optionFaults, type OptionRules } from '../../../options/read-options.ts';
import { filledText, milliseconds, wholeNumber } from '../../../options/value-rule.ts';
import type { Scan } from '../declare/scanner.ts';

export interface ClamAvOptions {
  /** The socket of clamd: `/run/clamav/clamd.ctl`. */
  readonly socket?: string;
  /** Or where it listens. */
  readonly address?: {
    /** The name or IP address of clamd. */
    readonly host: string;
    /** The TCP port of clamd. */
    readonly port: number;
  };
  /** How long clamd may be silent. Default: 120,000. */
  readonly timeoutMs?: number;
}

const rules: OptionRules<ClamAvOptions> = {
  socket: filledText,
  address: objectOf<NonNullable<ClamAvOptions['address']>>({ host: filledText, port: wholeNumber(1, 65_535) }),
  timeoutMs: milliseconds(1),
};

/** Scans with ClamAV: the file goes to clamd over its socket, chunk by chunk. clamd's `StreamMaxLength` must not be below `bytesMax`. */
export function clamav(options: ClamAvOptions): Scan {
  const faults = optionFaults('clamav()', options, rules);
  const { socket, address, timeoutMs = 120_000 } = (options as ClamAvOptions | undefined) ?? {};
  if (faults.length === 0 && (socket === undefined) === (address === undefined))
    faults.push({ id: 'E011', message: 'clamav(): give either socket or address.', hint: "clamav({ socket: '/run/clamav/clamd.ctl' })." });
  if (faults.length > 0) throw new InvalidOptions(faults);
  const target: NetConnectOpts = socket === undefined ? { ...(address as NonNullable<typeof address>) } : { path: socket };
  const attributes = { 'server.address': socket ?? address?.host, ...(address === undefined ? {} : { 'server.port': address.port }) };
  return (file) =>
    inSpan('clamav scan', { kind: 'client', attributes }, async () => {
      const connection = createConnection(target);
      connection.setTimeout(timeoutMs, () => connection.destroy(new Error(`clamd was silent for ${timeoutMs} ms.`)));
      try {
        await once(connection, 'connect');
        return verdictOf(await instream(connection, (await file.read()) as AsyncIterable<Buffer>));
      } finally {
        connection.destroy();
      }
    });
}

/** `zINSTREAM`: chunks with their length in front, an empty one at the end, and one answer. */
async function instream(connection: Socket, chunks: AsyncIterable<Buffer>): Promise<string> {
  const answer = text(connection);
  // clamd may answer and close before everything was sent, when the file is larger than it takes.
  answer.catch(() => undefined);
  connection.write('zINSTREAM\0');
  for await (const chunk of chunks) {
    if (!connection.writable) break;
    // It would be the end of the file, and what follows would not be scanned.
    if (chunk.length === 0) continue;
    const length = Buffer.alloc(4);
    length.writeUInt32BE(chunk.length);
    connection.write(length);
    if (!connection.write(chunk)) await Promise.race([once(connection, 'drain'), answer]);
  }
  if (connection.writable) connection.write(Buffer.alloc(4));
  return answer;
}

function verdictOf(answer: string): Awaited<ReturnType<Scan>> {
  const line = answer.replaceAll('\0', '').trim();
  if (line === 'stream: OK') return { clean: true };
  const found = /^stream: (.+) FOUND$/.exec(line)?.[1];
  if (found !== undefined) return { clean: false, reason: found };
  throw new Error(`clamd answered ${JSON.stringify(line.slice(0, 200))}.`);
}
