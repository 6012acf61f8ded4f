import { InvalidArgumentError } from 'commander';

export const DEFAULT_PORT = 3000;

/** Loopback: a server that others can reach is a decision. */
export const DEFAULT_HOST = '127.0.0.1';

export interface ListeningPlace {
  readonly host: string;
  readonly port: number;
}

export interface PlaceOptions {
  readonly port?: number;
  readonly host?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where to listen: the options of the command, else `PORT` and `HOST`, else the defaults. */
export function listeningPlace({ port, host }: PlaceOptions, environment: Environment, fail: (message: string) => never): ListeningPlace {
  const given = environment['PORT'];
  return {
    port: port ?? (given === undefined || given === '' ? DEFAULT_PORT : environmentPort(given, fail)),
    host: host ?? (environment['HOST'] || DEFAULT_HOST),
  };
}

/** For commander. */
export function portNumber(text: string): number {
  if (!isPort(text)) throw new InvalidArgumentError('A port is a number from 0 to 65535.');
  return Number(text);
}

function environmentPort(text: string, fail: (message: string) => never): number {
  return isPort(text) ? Number(text) : fail(`PORT is ${JSON.stringify(text)}; a port is a number from 0 to 65535.`);
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
}
