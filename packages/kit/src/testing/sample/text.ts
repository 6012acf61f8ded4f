import { patternSampler } from './pattern.ts';
import type { Random } from './random.ts';

const WORDS = [
  'amber',
  'birch',
  'cedar',
  'delta',
  'ember',
  'fjord',
  'grove',
  'hazel',
  'indigo',
  'juniper',
  'lotus',
  'maple',
  'ochre',
  'pearl',
  'river',
];
const two = (value: number): string => String(value).padStart(2, '0');
const hex = (random: Random, length: number): string => Array.from({ length }, () => random.int(0, 15).toString(16)).join('');
const date = (random: Random): string => `20${two(random.int(0, 49))}-${two(random.int(1, 12))}-${two(random.int(1, 28))}`;
const time = (random: Random): string =>
  `${two(random.int(0, 23))}:${two(random.int(0, 59))}:${two(random.int(0, 59))}.${String(random.int(0, 999)).padStart(3, '0')}Z`;
const host = (random: Random): string => `${random.pick(WORDS)}-${random.int(1, 99)}.example.org`;
const uuid = (random: Random): string =>
  `${hex(random, 8)}-${hex(random, 4)}-7${hex(random, 3)}-${random.pick(['8', '9', 'a', 'b'])}${hex(random, 3)}-${hex(random, 12)}`;
const base64 = (random: Random): string => Buffer.from(words(random, 3, 12)).toString('base64');
const uri = (random: Random): string => `https://${host(random)}/${random.pick(WORDS)}`;
const email = (random: Random): string => `${random.pick(WORDS)}.${random.int(1, 999)}@example.org`;

const FORMATS: Readonly<Record<string, (random: Random) => string>> = {
  'date-time': (random) => `${date(random)}T${time(random)}`,
  date,
  time,
  duration: (random) => `P${random.int(1, 30)}DT${random.int(1, 23)}H`,
  email,
  'idn-email': email,
  hostname: host,
  'idn-hostname': host,
  ipv4: (random) => `10.${random.int(0, 255)}.${random.int(0, 255)}.${random.int(1, 254)}`,
  ipv6: (random) => `fd00::${hex(random, 3).replace(/^0+/, 'a')}:${random.int(1, 9999)}`,
  uri,
  url: uri,
  iri: uri,
  'uri-reference': (random) => `/${random.pick(WORDS)}`,
  'iri-reference': (random) => `/${random.pick(WORDS)}`,
  'uri-template': (random) => `/${random.pick(WORDS)}/{id}`,
  'json-pointer': (random) => `/${random.pick(WORDS)}`,
  'relative-json-pointer': () => '0/a',
  'json-pointer-uri-fragment': (random) => `#/${random.pick(WORDS)}`,
  regex: () => '^[a-z]+$',
  uuid,
  guid: uuid,
  byte: base64,
  base64,
  base64url: (random) => base64(random).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''),
  int64: (random) => String(random.int(1, 1_000_000)),
};

function words(random: Random, low: number, high: number): string {
  const length = random.int(low, Math.min(high, Math.max(low, 16)));
  let text = random.pick(WORDS);
  while (text.length < length) text += ` ${random.pick(WORDS)}`;
  const cut = text.slice(0, length);
  return cut.endsWith(' ') ? `${cut.slice(0, -1)}x` : cut;
}

export interface TextConstraints {
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** JSON Schema counts code points and reads patterns as Unicode; old patterns may only compile without the flag. */
function expression(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return new RegExp(pattern);
  }
}

/** Draws until every constraint holds: first from the format, then from the pattern with ever more repetitions. */
export function sampleText(constraints: TextConstraints, random: Random): string {
  const { pattern, format, minLength: low = 0, maxLength: high = Infinity } = constraints;
  const matches = pattern === undefined ? undefined : expression(pattern);
  const fits = (text: string): boolean => text.length >= low && text.length <= high && (matches?.test(text) ?? true);
  const fromFormat = format === undefined ? undefined : FORMATS[format];
  if (fromFormat !== undefined) {
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const text = fromFormat(random);
      if (fits(text)) return text;
    }
  }
  if (pattern === undefined) return words(random, low === 0 && high > 0 ? 1 : low, high);
  const draw = patternSampler(pattern);
  for (let attempt = 0; attempt < 400; attempt += 1) {
    const text = draw(random, [2, 4, 8, 16, 1, 0, 64, 256][attempt % 8]!);
    if (fits(text)) return text;
    // A pattern without an end may be followed by anything: fill up to the least length.
    const filled = text + hex(random, Math.max(0, low - text.length) + random.int(0, 4));
    if (fits(filled)) return filled;
  }
  throw new Error(`No text was found for the pattern /${pattern}/ with a length from ${low} to ${high}. Pass a value of your own.`);
}
