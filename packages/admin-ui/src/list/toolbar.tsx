import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useEffect, useId, useRef, useState } from 'react';
import type { ListRequest } from '../api/client.ts';
import type { AdminFilter, AdminResourceShape } from '../api/shapes.ts';
import { toInput } from '../forms/form-values.ts';
import { ReferencePicker } from '../forms/reference-picker.tsx';
import { Suggestions } from '../forms/suggestions.tsx';
import { Icon } from '../icons/icon.tsx';
import { isNarrowed } from './list-query.ts';
import css from './list.module.css';
import { SavedFilters } from './saved-filters.tsx';

const TYPING_MS = 250;
/** The others wait behind a button, unless they are set. */
const FILTERS_SHOWN = 3;

interface ToolbarProps {
  readonly resource: AdminResourceShape;
  readonly query: ListRequest;
  readonly onChange: (change: Partial<ListRequest>, how: { readonly typing: boolean }) => void;
}

export function Toolbar({ resource, query, onChange }: ToolbarProps) {
  const [open, setOpen] = useState(false);
  const setFilter = (name: string, value: string, typing: boolean): void => {
    const { [name]: _, ...others } = query.filters;
    onChange({ filters: value === '' ? others : { ...others, [name]: value } }, { typing });
  };
  const shown = resource.filters.filter(({ name }, index) => open || index < FILTERS_SHOWN || query.filters[name] !== undefined);
  return (
    <div className={css['toolbar']} role="search">
      {resource.searches !== undefined && (
        <DelayedInput
          className={css['search']}
          label="Search"
          placeholder={`By ${resource.searches}`}
          value={query.search}
          withIcon
          onChange={(search) => onChange({ search }, { typing: true })}
        />
      )}
      {shown.map((filter) => (
        <Filter key={filter.name} filter={filter} value={query.filters[filter.name] ?? ''} onChange={setFilter} />
      ))}
      {shown.length < resource.filters.length && (
        <Button variant="subtle" px="xs" onClick={() => setOpen(true)}>
          More filters
        </Button>
      )}
      <SavedFilters resource={resource} query={query} />
      {isNarrowed(query) && (
        <Button variant="subtle" px="xs" onClick={() => onChange({ search: '', filters: {} }, { typing: false })}>
          Clear
        </Button>
      )}
    </div>
  );
}

interface FilterProps {
  readonly filter: AdminFilter;
  readonly value: string;
  readonly onChange: (name: string, value: string, typing: boolean) => void;
}

function Filter({ filter, value, onChange }: FilterProps) {
  if (filter.kind === 'select') {
    const choices = (filter.choices ?? []).map(({ value, label }) => ({ value, label }));
    return (
      <NativeSelect
        className={css['filter']}
        label={filter.label}
        data={[{ value: '', label: 'Any' }, ...choices]}
        value={value}
        onChange={(event) => onChange(filter.name, event.currentTarget.value, false)}
      />
    );
  }
  if (filter.kind === 'time') {
    return (
      <TextInput
        className={css['filter']}
        type="datetime-local"
        label={filter.label}
        value={String(toInput({ name: filter.name, label: filter.label, kind: 'time' }, value === '' ? null : value)).slice(0, 16)}
        onChange={(event) => {
          const time = new Date(event.currentTarget.value);
          onChange(filter.name, Number.isNaN(time.getTime()) ? '' : time.toISOString(), true);
        }}
      />
    );
  }
  if (filter.kind === 'reference') {
    return (
      <ReferencePicker
        className={css['filter'] ?? ''}
        label={filter.label}
        resource={filter.resource ?? ''}
        value={value}
        isClearable
        onChange={(id) => onChange(filter.name, id, false)}
      />
    );
  }
  return (
    <DelayedInput
      className={css['filter']}
      label={filter.label}
      value={value}
      suggestions={filter.suggestions ?? []}
      onChange={(text) => onChange(filter.name, text.trim(), true)}
    />
  );
}

interface DelayedInputProps {
  readonly className: string | undefined;
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly withIcon?: boolean;
  readonly suggestions?: readonly string[];
  readonly onChange: (value: string) => void;
}

/** Asks when the typing pauses, and follows the address when that changes by itself. */
function DelayedInput({ className, label, placeholder, value, withIcon = false, suggestions = [], onChange }: DelayedInputProps) {
  const listId = useId();
  const [text, setText] = useState(value);
  const sent = useRef(value);
  const change = useRef(onChange);
  useEffect(() => {
    change.current = onChange;
  });
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return undefined;
    const timer = window.setTimeout(() => {
      sent.current = text;
      change.current(text);
    }, TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <>
      <TextInput
        className={className}
        type="search"
        label={label}
        placeholder={placeholder}
        value={text}
        spellCheck={false}
        leftSection={withIcon ? <Icon name="search" size={16} /> : undefined}
        list={suggestions.length === 0 ? undefined : listId}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Suggestions id={listId} values={suggestions} />
    </>
  );
}
