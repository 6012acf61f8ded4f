import { NativeSelect, Text } from '@mantine/core';
import type { AdminImportResult } from '../api/shapes.ts';
import { Table } from '../values/table.tsx';
import css from './record.module.css';

type Preview = NonNullable<AdminImportResult['preview']>;

interface ImportField {
  readonly name: string;
  readonly label: string;
}

interface ImportColumnsProps {
  readonly columns: Preview['columns'];
  readonly fields: readonly ImportField[];
  readonly chosen: Readonly<Record<string, string>>;
  readonly onChange: (name: string, field: string) => void;
}

const LEFT_OUT = '';
/** The name of no field. */
const UNDECIDED = '?';

/** Which field each column of the file is: as its name or label says, until somebody chooses another one. */
export function ImportColumns({ columns, fields, chosen, onChange }: ImportColumnsProps) {
  const choices = fields.map(({ name, label }) => ({ value: name, label }));
  const known = new Set(fields.map(({ name }) => name));
  return (
    <section aria-label="Columns of the file" className={css['columns']}>
      {columns.map(({ name, field, fault }) => {
        const isOpen = fault !== null && chosen[name] === undefined && !known.has(field ?? '');
        const value = chosen[name] ?? (isOpen ? UNDECIDED : field !== null && known.has(field) ? field : LEFT_OUT);
        const open = isOpen ? [{ value: UNDECIDED, label: 'Choose …', disabled: true }] : [];
        return (
          <NativeSelect
            key={name}
            size="sm"
            label={name === '' ? '(no name)' : name}
            data={[...open, { value: LEFT_OUT, label: 'Ignore' }, ...choices]}
            value={value}
            error={isOpen ? 'No field has this name. Choose a field or Ignore.' : fault}
            onChange={(event) => onChange(name, event.currentTarget.value)}
          />
        );
      })}
    </section>
  );
}

/** The first rows as they were read, and every one that has errors. */
export function ImportRows({ preview: { columns, rows }, fields }: { readonly preview: Preview; readonly fields: readonly ImportField[] }) {
  if (rows.length === 0) return null;
  const labels = new Map(fields.map(({ name, label }) => [name, label]));
  const shown = [...new Set(columns.flatMap(({ field }) => (field !== null && labels.has(field) ? [field] : [])))];
  const hasErrors = rows.some(({ errors }) => errors.length > 0);
  return (
    <div className={css['scroll']} tabIndex={0} role="region" aria-label="Rows of the file">
      <Table className={css['stacked'] ?? ''}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Row</Table.Th>
            {hasErrors && <Table.Th>Errors</Table.Th>}
            {shown.map((name) => (
              <Table.Th key={name}>{labels.get(name)}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ number, values, errors }) => (
            <Table.Tr key={number}>
              <Table.Td data-label="Row">{number}</Table.Td>
              {hasErrors && (
                <Table.Td className={css['faults']} data-label="Errors">
                  <div>
                    {errors.map(({ field, message }, index) => (
                      <Text key={index} size="sm" c="var(--mantine-color-error)">
                        {field === '' ? message : `${labels.get(field) ?? field}: ${message}`}
                      </Text>
                    ))}
                  </div>
                </Table.Td>
              )}
              {shown.map((name) => (
                <Table.Td
                  key={name}
                  className={css['cell']}
                  data-label={labels.get(name)}
                  data-wrong={errors.some(({ field }) => field === name) || undefined}
                >
                  {textOf(values[name])}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
