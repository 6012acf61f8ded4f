import { type RowBuilder, rowBuilder } from '../row-builder.ts';
import { decoderOf, wireDecoderOf } from './codec.ts';

/** What is known of the columns of a result: enough to decode its rows in another process than the one that read them. */
export interface ResultColumns {
  readonly names: readonly string[];
  /** As declared; null for expressions. */
  readonly types: readonly (string | null)[];
  /** Integers are read as bigint, because a column of the result is one. */
  readonly readsBigints: boolean;
}

/** Turns rows as SQLite has them into rows as code has them, or into their wire form. */
export class RowDecoder {
  readonly columns: ResultColumns;
  // Made when first needed: few statements are read in both forms.
  #build: RowBuilder | undefined;
  #buildWire: RowBuilder | undefined;

  constructor(columns: ResultColumns) {
    this.columns = columns;
  }

  builderFor(as: 'wire' | undefined): RowBuilder {
    return as === 'wire' ? (this.#buildWire ??= this.#builder(wireDecoderOf)) : (this.#build ??= this.#builder(decoderOf));
  }

  /** Decodes the rows in place. */
  decode(rows: unknown[], as: 'wire' | undefined): unknown[] {
    const build = this.builderFor(as);
    for (let index = 0; index < rows.length; index++) rows[index] = build(rows[index] as unknown[]);
    return rows;
  }

  #builder(decoder: typeof decoderOf): RowBuilder {
    const { names, types, readsBigints } = this.columns;
    return rowBuilder(
      names,
      types.map((type) => decoder(type, readsBigints)),
    );
  }
}
