"""Admission policies: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with their bindings, in CEL."""
