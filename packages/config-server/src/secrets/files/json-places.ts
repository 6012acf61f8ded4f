import type { Place } from './place.ts';

const SPACE = /\s*/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const SCALAR = /[^\s,\]}]+/y;

/** The places of a JSON file that is known to be valid. */
export function jsonPlaces(text: string): Place[] {
  const places: Place[] = [];
  let at = 0;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const [found = ''] = pattern.exec(text) ?? [];
    at += found.length;
    return found;
  };
  const items = (close: string, item: (index: number) => void): void => {
    at++;
    take(SPACE);
    for (let index = 0; text[at] !== close; index++) {
      item(index);
      take(SPACE);
      if (text[at] === ',') at++;
      take(SPACE);
    }
    at++;
  };
  const value = (path: readonly string[]): void => {
    take(SPACE);
    const start = at;
    const container = text[at] === '{' || text[at] === '[';
    if (text[at] === '{') {
      items('}', () => {
        const key = JSON.parse(take(STRING)) as string;
        take(SPACE);
        at++;
        value([...path, key]);
      });
    } else if (text[at] === '[') items(']', (index) => value([...path, String(index)]));
    else if (take(STRING) === '') take(SCALAR);
    places.push({ path, start, end: at, flow: true, container });
  };
  value([]);
  return places;
}
