import { Button, Checkbox, Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import { useId, useState, type FormEvent } from 'react';
import { adminFilterNames, type AdminFilter, type AdminFilterOperator } from '../api/shapes.ts';
import { ReferencePicker } from '../forms/reference-picker.tsx';
import { Suggestions } from '../forms/suggestions.tsx';
import { dayOf, momentOf, presets, VERBS, without, type Filters, type Term } from './filter-terms.ts';

type Operator = Term['operator'];

interface FilterEditorProps {
  readonly filters: readonly AdminFilter[];
  readonly set: Filters;
  /** The one to change; absent: a new one. */
  readonly term?: Pick<Term, 'filter' | 'operator' | 'names'> | undefined;
  readonly onApply: (set: Filters) => void;
}

/** Which column, how it compares, and with what. */
export function FilterEditor({ filters, set, term, onApply }: FilterEditorProps) {
  const [name, setName] = useState(term?.filter.name ?? filters[0]?.name ?? '');
  const filter = filters.find((each) => each.name === name);
  const operators = filter === undefined ? [] : operatorsOf(filter);
  const [chosen, setChosen] = useState<Operator | undefined>(term?.operator);
  const operator = chosen !== undefined && operators.includes(chosen) ? chosen : operators[0];
  const [values, setValues] = useState<Filters>(term === undefined || term.filter.name !== name ? {} : set);
  if (filter === undefined || operator === undefined) return null;
  const apply = (event: FormEvent): void => {
    event.preventDefault();
    // A filter that is changed to another operator replaces the one before.
    const rest = without(set, [...(term?.names ?? []), ...namesOf(filter, operator)]);
    const given = Object.entries(values).filter(([key, value]) => value.trim() !== '' && namesOf(filter, operator).includes(key));
    onApply({ ...rest, ...Object.fromEntries(given.map(([key, value]) => [key, value.trim()])) });
  };
  return (
    <form onSubmit={apply} noValidate>
      <Stack gap="sm">
        <NativeSelect
          label="Filter by"
          data={filters.map((each) => ({ value: each.name, label: each.label }))}
          value={name}
          onChange={(event) => {
            setName(event.currentTarget.value);
            setChosen(undefined);
            setValues({});
          }}
        />
        {operators.length > 1 && (
          <NativeSelect
            label="Comparison"
            data={operators.map((each) => ({ value: each, label: each === 'range' ? 'is between' : VERBS[each] }))}
            value={operator}
            onChange={(event) => setChosen(event.currentTarget.value as Operator)}
          />
        )}
        <ValueInput filter={filter} operator={operator} values={values} onChange={setValues} />
        <Group justify="flex-end">
          <Button type="submit" size="sm">
            Apply
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export function operatorsOf(filter: AdminFilter): readonly Operator[] {
  const given = [...adminFilterNames(filter).values()].filter((each): each is AdminFilterOperator => each !== 'from' && each !== 'to');
  return filter.ends === undefined ? given : ['range', ...given];
}

function namesOf(filter: AdminFilter, operator: Operator): readonly string[] {
  if (operator === 'range') return filter.ends ?? [];
  return [...adminFilterNames(filter)].flatMap(([name, each]) => (each === operator ? [name] : []));
}

interface ValueInputProps {
  readonly filter: AdminFilter;
  readonly operator: Operator;
  readonly values: Filters;
  readonly onChange: (values: Filters) => void;
}

function ValueInput({ filter, operator, values, onChange }: ValueInputProps) {
  const listId = useId();
  const [name = ''] = namesOf(filter, operator);
  const value = values[name] ?? '';
  const choices = (filter.choices ?? []).map((choice) => ({ value: choice.value, label: choice.label }));
  const change = (next: string): void => onChange({ ...values, [name]: next });
  if (operator === 'range') return <RangeInput filter={filter} values={values} onChange={onChange} />;
  if (operator === 'empty') {
    const data = [
      { value: '', label: 'Any' },
      { value: 'yes', label: 'Is empty' },
      { value: 'no', label: 'Is not empty' },
    ];
    return <NativeSelect label="Value" data={data} value={value} onChange={(event) => change(event.currentTarget.value)} />;
  }
  if (operator === 'in')
    return (
      <Checkbox.Group label="Value" value={value === '' ? [] : value.split(',')} onChange={(next) => change(next.join(','))}>
        <Stack gap={6} mt={4}>
          {choices.map((choice) => (
            <Checkbox key={choice.value} size="sm" value={choice.value} label={choice.label} />
          ))}
        </Stack>
      </Checkbox.Group>
    );
  if (filter.kind === 'select')
    return (
      <NativeSelect
        label="Value"
        data={[{ value: '', label: 'Any' }, ...choices]}
        value={value}
        onChange={(event) => change(event.currentTarget.value)}
      />
    );
  if (filter.kind === 'reference')
    return <ReferencePicker label="Value" resource={filter.resource ?? ''} value={value} isClearable isInside onChange={change} />;
  if (filter.kind === 'time')
    return (
      <TextInput
        type="date"
        label={filter.label}
        value={value === '' ? '' : dayOf(value, false)}
        onChange={(event) => change(event.currentTarget.value === '' ? '' : momentOf(event.currentTarget.value, false))}
      />
    );
  const suggestions = filter.suggestions ?? [];
  return (
    <>
      <TextInput
        label="Value"
        value={value}
        spellCheck={false}
        list={suggestions.length === 0 ? undefined : listId}
        onChange={(event) => change(event.currentTarget.value)}
      />
      <Suggestions id={listId} values={suggestions} />
    </>
  );
}

function RangeInput({ filter, values, onChange }: Omit<ValueInputProps, 'operator'>) {
  const [from = '', to = ''] = filter.ends ?? [];
  const isTime = filter.kind === 'time';
  const type = filter.kind === 'number' ? 'text' : 'date';
  const read = (name: string, isEnd: boolean): string => {
    const value = values[name] ?? '';
    return isTime && value !== '' ? dayOf(value, isEnd) : value;
  };
  const write = (first: string, last: string): void => {
    const sent = (day: string, isEnd: boolean): string => (isTime && day !== '' ? momentOf(day, isEnd) : day);
    onChange({ ...values, [from]: sent(first, false), [to]: sent(last, true) });
  };
  const [first, last] = [read(from, false), read(to, true)];
  const inputMode = filter.kind === 'number' ? { inputMode: 'decimal' as const } : {};
  return (
    <Stack gap="xs">
      <Group grow gap="sm" align="end">
        <TextInput type={type} {...inputMode} label="From" value={first} onChange={(event) => write(event.currentTarget.value, last)} />
        <TextInput type={type} {...inputMode} label="To" value={last} onChange={(event) => write(first, event.currentTarget.value)} />
      </Group>
      {filter.kind !== 'number' && (
        <Group gap={6}>
          {presets(new Date()).map((preset) => (
            <Button key={preset.label} size="compact-xs" variant="default" onClick={() => write(preset.from, preset.to)}>
              {preset.label}
            </Button>
          ))}
        </Group>
      )}
    </Stack>
  );
}
