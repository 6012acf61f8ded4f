import { FAULTS_MAX } from '../../errors/fault-collector.ts';
import type { FieldError } from '../../errors/kit-error.ts';

type Path = readonly (string | number)[];

export const NUMBER_NOT_EXACT = 'number_not_exact';
export const NUMBER_NOT_EXACT_MESSAGE = 'The number has more digits than are stored. Send a string, or a number below 2^53.';

/** Digits that every number keeps. */
export const EXACT_DIGITS = 15;

/**
 * Whether a number of JSON would be read as another one: an integer of more than 2^53 that is not written as JavaScript writes it. Fractions are
 * rounded, as everywhere.
 */
export function isInexact(literal: string): boolean {
  const number = Number(literal);
  return Math.abs(number) > Number.MAX_SAFE_INTEGER && significant(literal) !== significant(String(number));
}

/** `-1.20e+30` → `12`. */
function significant(literal: string): string {
  return literal
    .replace(/e.*$/i, '')
    .replaceAll(/[^0-9]/g, '')
    .replace(/^0+/, '')
    .replace(/0+$/, '');
}

/** The numbers that were not read exactly, by every object and list that they are in, as paths below it. */
const inexact = new WeakMap<object, Path[]>();

/** Remembers numbers of a value that was just parsed. */
export function noteInexactNumbers(value: unknown, paths: readonly Path[]): void {
  for (const path of paths) {
    let container = value;
    for (let depth = 0; depth < path.length; depth += 1) {
      if (typeof container !== 'object' || container === null) break;
      const known = inexact.get(container) ?? [];
      known.push(path.slice(depth));
      inexact.set(container, known);
      container = (container as Record<string | number, unknown>)[path[depth] as string | number];
    }
  }
}

/** An error for each number in the value that was not read exactly, where no other error is about it. */
export function inexactNumberFaults(value: unknown, at: Path, known: readonly FieldError[]): FieldError[] {
  const paths = typeof value === 'object' && value !== null ? inexact.get(value) : undefined;
  if (paths === undefined) return [];
  const isKnown = (location: Path) => known.some((fault) => fault.location.join('\n') === location.join('\n'));
  return paths
    .slice(0, FAULTS_MAX)
    .map((path) => ({ location: [...at, ...path], code: NUMBER_NOT_EXACT, message: NUMBER_NOT_EXACT_MESSAGE }))
    .filter(({ location }) => !isKnown(location));
}

/** The numbers of members that become members of another object, by their names there. What is inside the members is known already. */
export function moveInexactNumbers(from: object, to: object, names: ReadonlyMap<string, string>): void {
  const moved = (inexact.get(from) ?? []).flatMap(([name, ...below]) => {
    const there = names.get(String(name));
    return there === undefined ? [] : [[there, ...below]];
  });
  if (moved.length > 0) inexact.set(to, moved);
}

/** Who reads the parts of a body reports their numbers with them. */
export function reportInexactNumbersByPart(body: object): void {
  inexact.delete(body);
}
