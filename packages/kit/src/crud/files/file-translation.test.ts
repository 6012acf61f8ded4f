import { describe, expect, test } from 'vitest';
import { fieldsOf, FileTranslation } from './file-translation.ts';
import type { FileRow, ReadFile } from './read-file.ts';

const fields = [
  { name: 'reference', label: 'Order number' },
  { name: 'customer_id', label: 'Customer' },
  { name: 'quantity', label: 'Quantity' },
];
const fieldsFor = (names: readonly string[], chosen = {}) => fieldsOf(names, { fields, chosen });

describe('the columns of a file', () => {
  test('are found by name, by label and by what is left of both without case, spaces and signs', () => {
    expect(fieldsFor(['reference', 'Customer', 'QUANTITY'])).toEqual(['reference', 'customer_id', 'quantity']);
    expect(fieldsFor(['order-number', 'customer id', ' Quantity '])).toEqual(['reference', 'customer_id', 'quantity']);
  });

  test('are each one field: the exact name wins, whatever comes first', () => {
    expect(fieldsFor(['Customer', 'customer_id'])).toEqual(['Customer', 'customer_id']);
    expect(fieldsFor(['Order number', 'ORDER NUMBER'])).toEqual(['reference', 'ORDER NUMBER']);
  });

  test('are what was chosen, which takes the field from others; an empty choice leaves the column out', () => {
    expect(fieldsFor(['Ref', 'reference', 'quantity'], { Ref: 'reference', quantity: '' })).toEqual(['reference', 'reference', null]);
    expect(fieldsFor(['Amount', 'Quantity'], { Amount: 'quantity' })).toEqual(['quantity', 'Quantity']);
  });

  test('that nothing is known of keep their name, also the names of members that every object has', () => {
    expect(fieldsFor(['created_at', '__proto__', 'constructor', ''])).toEqual(['created_at', '__proto__', 'constructor', '']);
  });
});

async function translated(file: FileTranslation, read: ReadFile): Promise<{ header: readonly string[] | undefined; rows: FileRow[] }> {
  const { header, rows } = file.read(read);
  const found: FileRow[] = [];
  for await (const batch of rows) found.push(...batch);
  return { header, rows: found };
}

function fileOf(header: readonly string[] | undefined, ...values: readonly Record<string, unknown>[]): ReadFile {
  const rows = values.map((each, index) => ({ number: index + 2, values: each }));
  return {
    header,
    rows: (async function* batches() {
      for (const row of rows) yield Promise.resolve([row]);
    })(),
  };
}

describe('a file with names', () => {
  const asked: (readonly string[])[] = [];
  const references = new Map([
    [
      'customer_id',
      (texts: readonly string[]) => {
        asked.push(texts);
        return Promise.resolve(
          new Map([
            ['Ada', { key: 'id-of-ada' }],
            ['Bob', { fault: 'Several records have the name "Bob".' }],
          ]),
        );
      },
    ],
  ]);

  test('has keys in place of names, which are asked for once, and says at the cell what is wrong', async () => {
    const file = new FileTranslation({ fields, chosen: {}, references }, true);
    const read = fileOf(
      ['Order number', 'Customer'],
      ...['Ada', 'Bob', 'key', 'Ada'].map((Customer) => ({ 'Order number': 'A', Customer })),
    );
    const { header, rows } = await translated(file, read);
    expect(header).toEqual(['reference', 'customer_id']);
    expect(rows.map((row) => (row.fault === undefined ? row.values['customer_id'] : null))).toEqual([
      'id-of-ada',
      'Bob',
      'key',
      'id-of-ada',
    ]);
    expect(rows[1]).toMatchObject({ number: 3, faults: { customer_id: 'Several records have the name "Bob".' } });
    expect(asked).toEqual([['Ada', 'Bob', 'key']]);
    expect(file.rows[0]).toEqual({ number: 2, values: { reference: 'A', customer_id: 'Ada' } });
    expect([...file.columns]).toEqual([
      ['Order number', 'reference'],
      ['Customer', 'customer_id'],
    ]);
  });

  test('of JSON lines has the fields that each line has, and no line with two values for one', async () => {
    const file = new FileTranslation({ fields, chosen: { Ref: 'reference' }, references }, false);
    const { rows } = await translated(file, fileOf(undefined, { Ref: 'A', quantity: 1 }, { Ref: 'B', reference: 'C' }, { Customer: 7 }));
    expect(rows).toMatchObject([
      { values: { reference: 'A', quantity: 1 } },
      { fault: 'has two values for reference', path: ['reference'] },
      { values: { customer_id: 7 } },
    ]);
    expect(file.rows).toEqual([]);
  });
});
