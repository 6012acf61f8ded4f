/** Where a file has a value. Ciphertexts are put there and taken from there, and everything around stays as it is. */
export interface Place {
  /** Keys and positions in arrays. */
  readonly path: readonly string[];
  readonly start: number;
  readonly end: number;
  /** Inside brackets or braces, where YAML needs quotes. */
  readonly flow: boolean;
  /** A table or an array, which has places inside. */
  readonly container: boolean;
  /** The comment, with the blanks before it, that the text of the place has in its first line: `| # a comment`. */
  readonly comment?: string;
}

/** Something a file has that cannot be edited in place, such as an anchor. */
export class NotEditable extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotEditable';
  }
}
