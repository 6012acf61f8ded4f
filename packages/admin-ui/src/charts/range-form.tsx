import { Button, Group, TextInput } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { fromInput, toInput } from '../forms/form-values.ts';

interface RangeFormProps {
  /** ISO 8601; empty: not chosen yet. */
  readonly ends: readonly [string, string];
  readonly onChoose: (from: string, to: string) => void;
}

const field = (name: string) => ({ name, label: name, kind: 'time' }) as const;

/** A range of time, typed. Dragging over a chart fills it in. */
export function RangeForm({ ends, onChoose }: RangeFormProps) {
  const [from, setFrom] = useState(() => String(toInput(field('from'), ends[0] === '' ? null : ends[0])));
  const [to, setTo] = useState(() => String(toInput(field('to'), ends[1] === '' ? null : ends[1])));
  const [fault, setFault] = useState<string | undefined>(undefined);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const [first, second] = [fromInput(field('from'), from), fromInput(field('to'), to)];
    if (!('value' in first) || !('value' in second)) return setFault('Enter both times.');
    const [begin, end] = [String(first.value), String(second.value)];
    if (Date.parse(end) - Date.parse(begin) < 10_000) return setFault('The end must be at least 10 seconds after the start.');
    return onChoose(begin, end);
  };
  return (
    <form onSubmit={submit} noValidate>
      <Group gap="sm" align="start">
        <TextInput
          type="datetime-local"
          step={1}
          size="xs"
          label="From"
          value={from}
          onChange={(event) => setFrom(event.currentTarget.value)}
        />
        <TextInput
          type="datetime-local"
          step={1}
          size="xs"
          label="To"
          error={fault}
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" variant="default" mt={22}>
          Apply
        </Button>
      </Group>
    </form>
  );
}
