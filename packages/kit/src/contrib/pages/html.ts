/** Markup. Every other value in a template is text. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

type Part = Html | string | number | null | readonly Html[];

/** A template whose values become text, but for markup of this function. */
export function html(texts: TemplateStringsArray, ...values: readonly Part[]): Html {
  return new Html(texts.map((text, index) => text + (index < values.length ? markupOf(values[index] ?? null) : '')).join(''));
}

function markupOf(value: Part): string {
  if (value === null) return '';
  if (value instanceof Html) return value.markup;
  if (typeof value === 'string' || typeof value === 'number') return escaped(String(value));
  return value.map(markupOf).join('');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
