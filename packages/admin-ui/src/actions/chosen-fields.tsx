import { Button, Group, NativeSelect, Text } from '@mantine/core';
import type { AdminField } from '../api/shapes.ts';
import type { InputValues } from '../forms/form-values.ts';
import { lowerFirst } from '../values/format.ts';

interface ChosenFieldsProps {
  readonly offered: readonly AdminField[];
  readonly chosen: readonly string[];
  readonly inputs: InputValues;
  /** `12 products`. */
  readonly what: string;
  readonly onChoose: (names: readonly string[]) => void;
}

/** Which fields a selection gets, and in one sentence what that does. */
export function ChosenFields({ offered, chosen, inputs, what, onChoose }: ChosenFieldsProps) {
  const left = offered.filter(({ name }) => !chosen.includes(name));
  const taken = offered.filter(({ name }) => chosen.includes(name));
  const missing = taken.filter(({ name, required }) => required === true && (inputs[name] ?? '') === '');
  return (
    <>
      {left.length > 0 && (
        <NativeSelect
          label="Field to change"
          data={[
            { value: '', label: chosen.length === 0 ? 'Choose a field' : 'Choose another field' },
            ...left.map(({ name, label, refused }) => ({ value: name, label, disabled: refused !== undefined })),
          ]}
          value=""
          onChange={(event) => {
            if (event.currentTarget.value !== '') onChoose([...chosen, event.currentTarget.value]);
          }}
        />
      )}
      {left.map(
        ({ name, label, refused }) =>
          refused !== undefined && (
            <Text key={name} size="xs" c="dimmed">
              {label}: {refused}
            </Text>
          ),
      )}
      {taken.length > 0 && (
        <Group gap="xs">
          {taken.map(({ name, label }) => (
            <Button key={name} size="compact-xs" variant="default" onClick={() => onChoose(chosen.filter((each) => each !== name))}>
              Leave {lowerFirst(label)} as it is
            </Button>
          ))}
        </Group>
      )}
      <Text size="sm" role="status">
        {taken.length === 0
          ? 'Nothing is changed yet: choose a field.'
          : missing.length > 0
            ? `Enter ${missing.map(({ label }) => lowerFirst(label)).join(', ')}.`
            : `Sets ${taken.map((field) => `${lowerFirst(field.label)} to ${shown(inputs[field.name])}`).join(', ')} on ${what}.`}
      </Text>
    </>
  );
}

function shown(value: InputValues[string] | undefined): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  const text = typeof value === 'string' ? value : (value ?? []).join(', ');
  return text === '' ? 'empty' : `"${text}"`;
}
