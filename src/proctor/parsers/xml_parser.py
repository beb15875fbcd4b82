"""Where verifiers has XMLParser."""

from proctor.env.xml_parser import XMLParser as XMLParser
