import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { readChoices } from '../api/client.ts';

const TYPING_MS = 200;

interface ReferencePickerProps {
  readonly id?: string;
  readonly name?: string;
  readonly className?: string;
  readonly label: string;
  readonly description?: ReactNode;
  readonly placeholder?: string | undefined;
  readonly withAsterisk?: boolean;
  readonly 'aria-required'?: true | undefined;
  readonly error?: string | undefined;
  readonly disabled?: boolean;
  /** The list to search in. */
  readonly resource: string;
  /** The id of the record; empty: none. */
  readonly value: string;
  readonly isClearable: boolean;
  /** Inside something that closes when another place is clicked: the offered records are part of it. */
  readonly isInside?: boolean;
  readonly onChange: (id: string) => void;
}

/** A record of another list, found by typing what people call it. */
export function ReferencePicker({ resource, value, isClearable, isInside = false, onChange, ...input }: ReferencePickerProps) {
  const [search, setSearch] = useState('');
  const [isOpen, setOpen] = useState(false);
  const [asked] = useDebouncedValue(search, TYPING_MS);
  const current = useQuery({
    queryKey: ['choice', resource, value],
    queryFn: ({ signal }) => readChoices(resource, { id: value }, signal),
    enabled: value !== '',
  });
  const title = current.data?.items[0]?.title ?? value;
  // The text of a chosen record is its title, and no search.
  const wanted = asked === title ? '' : asked;
  const found = useQuery({
    queryKey: ['choices', resource, wanted],
    queryFn: ({ signal }) => readChoices(resource, { search: wanted }, signal),
    enabled: isOpen,
    placeholderData: keepPreviousData,
  });
  const options = (found.data?.items ?? []).map((item) => ({ value: item.id, label: item.title }));
  const data = value === '' || options.some((option) => option.value === value) ? options : [{ value, label: title }, ...options];
  return (
    <Select
      {...input}
      data={data}
      value={value === '' ? null : value}
      searchable
      // A form moves the focus to its first error: what is offered would cover the sentence.
      openOnFocus={false}
      searchValue={search}
      onSearchChange={setSearch}
      // The server has searched.
      filter={({ options: all }) => all}
      clearable={isClearable}
      clearButtonProps={{ 'aria-label': `Clear ${input.label}` }}
      placeholder={input.placeholder ?? 'Type to search'}
      nothingFoundMessage={found.isFetching ? 'Searching …' : 'Nothing found'}
      onDropdownOpen={() => setOpen(true)}
      onDropdownClose={() => setOpen(false)}
      onChange={(id) => onChange(id ?? '')}
      comboboxProps={{ withinPortal: !isInside }}
    />
  );
}
