import { jsonSchemaOf, type Schema } from '../../../http/declare/schema.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';

const [EARLIEST, LATEST] = [new Date('0001-01-01T00:00:00.000Z'), new Date('9999-12-31T23:59:59.999Z')];
const text = jsonSchema<string>({ type: 'string', format: 'date-time' });
const json = () => jsonSchemaOf(text, 'input');

/** A time of the query string. A valid date-time may still be outside the range of a database: a leap second, the year 10000 after an offset. */
export const EntryTime: Schema<string, Date> = {
  '~standard': {
    version: 1,
    vendor: 'kit',
    jsonSchema: { input: json, output: json },
    async validate(value) {
      const result = await text['~standard'].validate(value);
      if (result.issues !== undefined) return result;
      const time = new Date(result.value);
      return time >= EARLIEST && time <= LATEST ? { value: time } : { issues: [{ message: 'Use a time in the years 1 to 9999.' }] };
    },
  },
};
